"""Which of the tasks in sight is drawn next: rather one that the policy sometimes solves and sometimes does not.

A group teaches where some of its attempts are right and some wrong. So a task is drawn by E[4 p (1 - p)] of its success
rate p, the variance of an attempt's outcome (Rutherford et al., arXiv 2408.15099; with language models: Bae et al.,
arXiv 2504.03380). What is known of p is a Beta posterior that forgets, since the policy moves. Its prior is as sure as
`CONCENTRATION` attempts and has the rate that tasks of the level came to when they were first tried.

Only own attempts at tasks that this node has drawn itself are counted: what peers send changes nothing here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codezero.runtime import saved
from codezero.tasks.posterior import Posterior
from codezero.tasks.sources import ListSource, StreamSource
from codezero.tasks.withheld import Withheld, id_of
from codezero.types import ScoredGroup, Task

SIZE = 48
"""Tasks of a source in sight at a time: few enough to be known after a hundred groups (`benchmarks/draws.py`)."""
EXPLORE = 0.1
"""Share of draws that are blind, so that what is in sight is renewed and no task is given up for good."""
KEEP = 0.7
"""What is left of a task's evidence with each further group: a memory of three groups."""
CONCENTRATION = 0.3
"""Sum of the prior's two parameters: success rates of a small model lie near 0 or 1, so that four equal attempts say
nearly all. Mixed groups of 20, 28 and 34 % at G = 4, 8 and 16, as measured, come of 0.35 at a mean rate of 0.3."""


@dataclass(slots=True)
class _Candidate:
    task: Task
    posterior: Posterior = field(default_factory=Posterior)
    num_groups: int = 0
    """Own groups that came to a verdict."""


class Candidates:
    """A bounded number of tasks with what own attempts at them came to; resumable."""

    def __init__(self, name: str, seed: int, size: int, most_groups: int | None = None) -> None:
        """A task leaves sight when it is the one that teaches least and another comes; with `most_groups`, for tasks
        that others make, after so many groups or one that is not mixed, or when it is the oldest and another comes."""
        self._name, self._seed, self._size, self._most_groups = name, seed, size, most_groups
        self._num_drawn = 0
        self._known: dict[str, _Candidate] = {}
        """By `id_of`, the oldest first."""
        self._levels: dict[int, Posterior] = {}
        """Of what a task comes to when it is first tried, by difficulty; 0 where the source does not say."""
        self._asked: set[str] = set()
        """Drawn in the running round."""

    @property
    def has_room(self) -> bool:
        return len(self._known) < self._size

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The oldest first."""
        return tuple(one.task for one in self._known.values())

    def add(self, task: Task) -> None:
        """Takes a task into sight, and another out of it where they are too many."""
        name = id_of(task)
        self._known.setdefault(name, _Candidate(task))
        others = [one for one in self._known if one != name and one not in self._asked]
        if len(self._known) > self._size and others:
            least = min(others, key=lambda one: self._teaches(self._known[one]))
            del self._known[least if self._most_groups is None else others[0]]

    def draw(self, blind: Callable[[], Task | None]) -> Task | None:
        """A task that was not drawn in this round, while there is one. `blind` gives the next one by another order,
        which is added, or leaves it to the lot; it is asked too when there is none left."""
        rng = random.Random(f"{self._seed}/{self._name}/candidates/{self._num_drawn}")
        self._num_drawn += 1
        explores, point = rng.random() < EXPLORE, rng.random()
        left = {name: one for name, one in self._known.items() if name not in self._asked}
        task = blind() if explores or not left else None
        if task is not None:
            self.add(task)
        if left and (task is None or id_of(task) in self._asked):
            weights = {name: 1.0 if explores else self._teaches(one) for name, one in left.items()}
            task = left[weighted(weights, point)].task
        if task is not None:
            self._asked.add(id_of(task))
        return task

    def note(self, groups: Iterable[ScoredGroup]) -> None:
        """Ends a round, with all its groups. A task that has never come to a verdict, such as one whose prompt is too
        long, leaves sight."""
        for group in groups:
            name = id_of(group.group.task)
            if group.external or not group.scored or name not in self._asked or name not in self._known:
                continue
            known, right, tried = self._known[name], group.num_correct, len(group.rewarded)
            if known.num_groups == 0:
                level = self._levels.setdefault(known.task.difficulty or 0, Posterior())
                level.observe(right / tried, 1 - right / tried)
            known.posterior.observe(right, tried - right, KEEP)
            known.num_groups += 1
            if self._most_groups is not None and not (group.is_mixed and known.num_groups < self._most_groups):
                del self._known[name]
        for name in self._asked & self._known.keys():
            if self._known[name].num_groups == 0:
                del self._known[name]
        self._asked.clear()

    def state_dict(self) -> dict[str, Any]:
        """Plain JSON values, without the tasks themselves."""
        return {
            "drawn": self._num_drawn,
            "asked": sorted(self._asked),
            "levels": [{"level": level, **one.state_dict()} for level, one in self._levels.items()],
            "tasks": [
                {"id": name, "groups": one.num_groups, **one.posterior.state_dict()}
                for name, one in self._known.items()
            ],
        }

    def load_state_dict(self, state: Mapping[str, Any], tasks: Iterable[Task]) -> None:
        """Continues where `state` was taken, with those of its tasks given. Raises StateError: it is damaged."""
        num_drawn, found = saved.count(state, "drawn"), {id_of(task): task for task in tasks}
        levels = {saved.count(row, "level"): Posterior.of(row) for row in saved.items(state, "levels")}
        known = {
            name: _Candidate(found[name], Posterior.of(row), saved.count(row, "groups"))
            for name, row in zip(names_in(state), saved.items(state, "tasks"), strict=True)
            if name in found
        }
        self._num_drawn, self._levels, self._known = num_drawn, levels, known
        self._asked = set(map(str, saved.items(state, "asked")))

    def _teaches(self, candidate: _Candidate) -> float:
        """E[4 p (1 - p)] for p ~ Beta(a, b), which is 4 a b / ((a + b) (a + b + 1))."""
        level = self._levels.get(candidate.task.difficulty or 0, Posterior())
        rate = (1 + level.successes) / (2 + level.evidence)
        a = CONCENTRATION * rate + candidate.posterior.successes
        b = CONCENTRATION * (1 - rate) + candidate.posterior.failures
        return 4 * a * b / ((a + b) * (a + b + 1))


class Informative:
    """A source whose tasks are drawn from `SIZE` candidates. Blind draws take its tasks in their own order."""

    def __init__(self, source: ListSource | StreamSource, seed: int, withheld: Withheld) -> None:
        self.name = source.name
        self._source, self._seed, self._withheld = source, seed, withheld
        self._candidates = Candidates(source.name, seed, SIZE)
        self._saved: Mapping[str, Any] | None = None
        """Candidates of a state that is not taken up yet: their tasks may have to be read from a hub."""

    def next_task(self) -> Task:
        """Raises TaskError and HubUnreachable as the source does; StateError: the candidates' state is damaged."""
        if self._saved is not None:
            self._take_up(self._saved)
        while self._candidates.has_room and not self._source.is_through:
            self._candidates.add(self._next())
        task = self._candidates.draw(self._next)
        assert task is not None  # the source always has a next one
        return task

    def _next(self) -> Task:
        # For each row of a stream the one read longest ago is forgotten; those in sight are still asked.
        for task in self._candidates.tasks:
            self._withheld.keep_drawn(self._withheld.problem(task))
        return self._source.next_task()

    def _take_up(self, state: Mapping[str, Any]) -> None:
        # At once: while others are read after it, a stream's problem may be forgotten.
        kept = [self._withheld.problem(task) for task in self._source.find(names_in(state))]
        for problem in kept:
            self._withheld.keep_drawn(problem)
        self._candidates.load_state_dict(state, [problem.task for problem in kept])
        self._saved = None

    def note(self, groups: Iterable[ScoredGroup]) -> None:
        """Ends a round, with all its groups."""
        self._candidates.note(groups)

    def all_tasks(self) -> Iterable[Task]:
        return self._source.all_tasks()

    def state_dict(self) -> dict[str, Any]:
        """That of the source, with the candidates."""
        candidates = self._candidates.state_dict() if self._saved is None else dict(self._saved)
        return {**self._source.state_dict(), "candidates": candidates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises StateError: the state is damaged. In that of a source without candidates there are none."""
        self._source.load_state_dict(state)
        self._candidates, self._saved = Candidates(self.name, self._seed, SIZE), state.get("candidates")


def names_in(state: Mapping[str, Any]) -> list[str]:
    """`id_of` the tasks in a state of candidates. Raises StateError: it is damaged."""
    return [saved.text(row, "id") for row in saved.items(state, "tasks")]


def weighted(weights: Mapping[str, float], point: float) -> str:
    """The name at `point` in 0..1 of the shares, of which at least one is above 0."""
    left = point * sum(weights.values())
    drawable = [name for name, weight in weights.items() if weight > 0]
    for name in drawable:
        left -= weights[name]
        if left < 0:
            return name
    return drawable[-1]  # rounding may leave the point a hair beyond the last share
