"""The choice of the next task among candidates, which prefers those that the policy solves sometimes but not always.

A group teaches if some of its attempts are right and some wrong. So a task's weight in the draw is E[4 p (1 - p)] of
its success rate p, where p (1 - p) is the variance of an attempt's outcome (Rutherford et al., arXiv 2408.15099; with
language models: Bae et al., arXiv 2504.03380). p has a Beta posterior that discounts old evidence, since the policy
changes. Its prior fits the first groups at tasks of the level, in their rate and in E[4 p (1 - p)]: where most tasks
turn out to be solved always or never, an untried one promises little.

Only own attempts at tasks that this node has drawn itself are counted: groups of peers change nothing here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codezero.tasks.posterior import KEEP as LEVEL_KEEP
from codezero.tasks.posterior import Posterior
from codezero.tasks.sources import ListSource, StreamSource
from codezero.tasks.withheld import Withheld, id_of
from codezero.types import ScoredGroup, Task

SIZE = 48
"""The number of candidates of a source: few enough to be known after a hundred groups (`benchmarks/draws.py`)."""
EXPLORE = 0.1
"""The share of draws that ignore the estimates, so that candidates are replaced and no task is given up for good."""
KEEP = 0.5
"""The factor on a task's evidence with each further group, a memory of two groups: the failures of a task that the
policy has learnt since say nothing any more."""
MOST_AHEAD = 4
"""The most rounds that tasks are drawn ahead of the one that is judged (rollout.max_staleness)."""
TEACHES = 0.19
"""E[4 p (1 - p)] of a level's tasks before any was tried. The measured 20, 28 and 34 % of mixed groups at G = 4, 8 and
16 of a small model fit it."""
PRIOR = 2
"""The number of groups that `TEACHES` counts as."""
MOST = 0.9
"""The largest share that E[4 p (1 - p)] has of what it would be if all tasks had the same p."""


@dataclass(slots=True)
class _Level:
    """The results of first groups at the tasks of a level."""

    rate: Posterior = field(default_factory=Posterior)
    """The success rate; a group counts as one trial."""
    teaches: float = 0.0
    """The sum of 4 p (1 - p) over the groups, discounted as the rate is."""

    def observe(self, right: int, tried: int) -> None:
        """Adds the first group at a task, of two attempts or more."""
        self.rate.observe(right / tried, 1 - right / tried)
        # E[right (tried - right)] is p (1 - p) tried (tried - 1).
        self.teaches = LEVEL_KEEP * self.teaches + 4 * right * (tried - right) / (tried * (tried - 1))

    def prior(self) -> tuple[float, float]:
        """Returns the parameters of the Beta distribution that has the level's rate and 4 p (1 - p)."""
        mean = (1 + self.rate.successes) / (2 + self.rate.evidence)
        alike = 4 * mean * (1 - mean)
        teaches = min((PRIOR * TEACHES + self.teaches) / (PRIOR + self.rate.evidence), MOST * alike)
        total = teaches / (alike - teaches)
        return total * mean, total * (1 - mean)


@dataclass(slots=True)
class _Candidate:
    task: Task | None
    """The task; None until the task of a saved candidate has been found again."""
    level: int
    """The task's difficulty; 0 stands for an unknown one."""
    posterior: Posterior = field(default_factory=Posterior)
    num_groups: int = 0
    """The number of own groups that came to a verdict."""


class Candidates:
    """A bounded number of tasks with the results of own attempts at them; resumable."""

    def __init__(self, name: str, seed: int, size: int, most_groups: int | None = None) -> None:
        """If there are too many, the task with the lowest weight leaves. With `most_groups`, for tasks made by others,
        it is the oldest, and a task also leaves after so many groups or after one that is not mixed."""
        self._name, self._seed, self._size, self._most_groups = name, seed, size, most_groups
        self._num_drawn = 0
        self._known: dict[str, _Candidate] = {}
        """The candidates by `id_of`, the oldest first."""
        self._levels: dict[int, _Level] = {}
        """The levels by difficulty; 0 stands for an unknown one."""
        self._asked: dict[str, int] = {}
        """The ids of drawn tasks that have come to no verdict yet, and how many rounds have ended since."""

    @property
    def has_room(self) -> bool:
        return len(self._known) < self._size

    @property
    def mean_learnability(self) -> float:
        """The mean of E[4 p (1 - p)] over the tasks; that of an untried one without tasks."""
        known = self._known.values()
        return sum(map(self._learnability, known)) / len(known) if known else TEACHES

    @property
    def has_exhausted(self) -> bool:
        """True if a tried task that may be drawn weighs less than an untried one."""
        return any(
            one.num_groups > 0 and self._learnability(one) < self._learnability(_Candidate(one.task, one.level))
            for name, one in self._known.items()
            if name not in self._asked
        )

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, the oldest first."""
        return tuple(one.task for one in self._known.values() if one.task is not None)

    def add(self, task: Task) -> None:
        """Adds a task, and removes another if there are too many."""
        name = id_of(task)
        self._known.setdefault(name, _Candidate(task, task.difficulty or 0))
        others = [one for one in self._known if one != name and one not in self._asked]
        if len(self._known) > self._size and others:
            least = min(others, key=lambda one: self._learnability(self._known[one]))
            del self._known[least if self._most_groups is None else others[0]]

    def draw(self, next_task: Callable[[], Task | None]) -> Task | None:
        """Returns a task that waits for no verdict, if there is one; None if there is no task at all.

        Tasks are drawn by weight, except in draws that explore. These, and all draws while no candidate is left, take
        what `next_task` returns, which becomes a candidate; if that is none, or one that waits, they are uniform.
        """
        rng = random.Random(f"{self._seed}/{self._name}/candidates/{self._num_drawn}")
        self._num_drawn += 1
        explores, point = rng.random() < EXPLORE, rng.random()
        left = {name: one for name, one in self._known.items() if name not in self._asked}
        task = next_task() if explores or not left else None
        if task is not None:
            self.add(task)
        if left and (task is None or id_of(task) in self._asked):
            weights = {name: 1.0 if explores else self._learnability(one) for name, one in left.items()}
            task = left[weighted(weights, point)].task
        if task is not None:
            self._asked[id_of(task)] = 0
        return task

    def note(self, groups: Iterable[ScoredGroup]) -> None:
        """Counts all groups of a round that has ended. A drawn task that has never come to a verdict is removed, one
        without a group, such as one whose prompt is too long, when the rounds that it may be drawn for have ended."""
        for group in groups:
            name = id_of(group.group.task)
            if group.external or name not in self._asked or name not in self._known:
                continue
            del self._asked[name]
            if not group.scored:
                self._forget_untried(name)
                continue
            known, right, tried = self._known[name], group.num_correct, len(group.rewarded)
            if known.num_groups == 0 and tried > 1:
                self._levels.setdefault(known.level, _Level()).observe(right, tried)
            known.posterior.observe(right, tried - right, KEEP)
            known.num_groups += 1
            if self._most_groups is not None and not (group.is_mixed and known.num_groups < self._most_groups):
                del self._known[name]
        for name, age in list(self._asked.items()):
            self._asked[name] = age + 1
            if age == MOST_AHEAD:
                del self._asked[name]
                self._forget_untried(name)

    def _forget_untried(self, name: str) -> None:
        if name in self._known and self._known[name].num_groups == 0:
            del self._known[name]

    def state_dict(self) -> dict[str, Any]:
        """Returns plain JSON values, without the tasks themselves."""
        return {
            "drawn": self._num_drawn,
            "asked": dict(sorted(self._asked.items())),
            "levels": [
                {"level": level, **one.rate.state_dict(), "teaches": one.teaches} for level, one in self._levels.items()
            ],
            "tasks": [
                {"id": name, "level": one.level, "groups": one.num_groups, **one.posterior.state_dict()}
                for name, one in self._known.items()
            ],
        }

    def load_state_dict(self, state: Mapping[str, Any], tasks: Iterable[Task] | None) -> None:
        """Continues where `state` was taken, with those of its tasks given. With None it has all, and may draw and add
        only when it has loaded its own state with tasks."""
        found = {} if tasks is None else {id_of(task): task for task in tasks}
        self._num_drawn, self._asked = state["drawn"], dict(state["asked"])
        self._levels = {row["level"]: _Level(_posterior(row), row["teaches"]) for row in state["levels"]}
        self._known = {
            row["id"]: _Candidate(found.get(row["id"]), row["level"], _posterior(row), row["groups"])
            for row in state["tasks"]
            if tasks is None or row["id"] in found
        }

    def _learnability(self, candidate: _Candidate) -> float:
        """Returns E[4 p (1 - p)] for p ~ Beta(a, b), which is 4 a b / ((a + b) (a + b + 1))."""
        a, b = self._levels.get(candidate.level, _Level()).prior()
        a, b = a + candidate.posterior.successes, b + candidate.posterior.failures
        return 4 * a * b / ((a + b) * (a + b + 1))


class Informative:
    """A source whose tasks are drawn from `SIZE` candidates. Draws that explore take its tasks in their own order."""

    def __init__(self, source: ListSource | StreamSource, seed: int, withheld: Withheld) -> None:
        self.name = source.name
        self._source, self._seed, self._withheld = source, seed, withheld
        self._candidates = Candidates(source.name, seed, SIZE)
        self._lacks_tasks = False
        """True if candidates were restored and their tasks not yet, which may have to be read from a hub."""

    @property
    def mean_learnability(self) -> float:
        """How much a draw teaches on average, as E[4 p (1 - p)]."""
        return self._candidates.mean_learnability

    def next_task(self) -> Task:
        """Returns the next task. Raises TaskError and HubUnreachable as the source does."""
        if self._lacks_tasks:
            self._restore_tasks()
        while self._candidates.has_room and not self._source.is_through:
            self._candidates.add(self._next())
        if not self._candidates.has_room and self._candidates.has_exhausted:
            self._candidates.add(self._next())  # in the place of the one with the lowest weight
        task = self._candidates.draw(self._next)
        assert task is not None  # the source always has a next one
        return task

    def _next(self) -> Task:
        # Each row of a stream makes `withheld` forget its oldest: candidates are renewed, as they may be drawn again.
        for task in self._candidates.tasks:
            self._withheld.keep_drawn(self._withheld.problem(task))
        return self._source.next_task()

    def _restore_tasks(self) -> None:
        state = self._candidates.state_dict()
        # Looked up while reading, since a stream's problem may be forgotten when others are read after it.
        kept = [self._withheld.problem(task) for task in self._source.find({row["id"] for row in state["tasks"]})]
        for problem in kept:
            self._withheld.keep_drawn(problem)
        self._candidates.load_state_dict(state, [problem.task for problem in kept])
        self._lacks_tasks = False

    def note(self, groups: Iterable[ScoredGroup]) -> None:
        """Counts all groups of a round that has ended."""
        self._candidates.note(groups)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the source, with that of the candidates."""
        return {**self._source.state_dict(), "candidates": self._candidates.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where `state` was taken, even one without candidates."""
        self._source.load_state_dict(state)
        self._candidates, saved = Candidates(self.name, self._seed, SIZE), state.get("candidates")
        self._lacks_tasks = saved is not None
        if saved is not None:
            self._candidates.load_state_dict(saved, None)


def _posterior(row: Mapping[str, Any]) -> Posterior:
    return Posterior(row["successes"], row["failures"])


def weighted(weights: Mapping[str, float], point: float) -> str:
    """Returns the name at `point` in 0..1 of the shares, at least one of which is above 0."""
    left = point * sum(weights.values())
    drawable = [name for name, weight in weights.items() if weight > 0]
    for name in drawable:
        left -= weights[name]
        if left < 0:
            return name
    return drawable[-1]  # rounding may leave the point just beyond the last share
