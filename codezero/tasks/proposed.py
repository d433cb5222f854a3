"""Draws a share of the tasks from peers' proposals, while there are any, and the rest from the node's own sources."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from codezero.config import TaskDraw
from codezero.ports import Resumable, TaskSource
from codezero.prompts import solver as prompt
from codezero.proposals import Proposal
from codezero.tasks.candidates import Candidates
from codezero.tasks.withheld import id_of
from codezero.types import ScoredGroup, Task, TaskOrigin

MAX_STOCK = 64
"""The most proposals kept for later rounds; the oldest are dropped, as the level has changed since they were made."""
MAX_KNOWN = 4096
"""The most ids kept of proposals taken up or refused, so that none comes twice, and of tasks made of proposals."""
MOST_GROUPS = 4
"""The most groups at a proposal that is still solved only sometimes: one that can only be guessed stays so for ever."""


class _Source(TaskSource, Resumable, Protocol):
    """A source whose position is saved."""


class WithProposals:
    """A ports.TaskSource. Draw number n is a proposal, if there is one, whenever n x share passes a whole number."""

    def __init__(
        self,
        rest: _Source,
        share: float,
        collect: Callable[[], Sequence[Proposal]],
        why_not: Callable[[Proposal], str | None],
        take_rejected: Callable[[], Mapping[str, int]] = dict,
        show_all_tests: bool = True,
        candidates: Candidates | None = None,
    ) -> None:
        """`collect` returns what proposers have published, `why_not` the reason to refuse a proposal or None, and
        `take_rejected` the number of messages since its last call that were no proposals, by reason. Proposals are
        drawn from `candidates`; without these each is drawn once, the newest first."""
        self._rest, self._share, self._collect, self._why_not = rest, share, collect, why_not
        self._take_rejected, self._show_all_tests = take_rejected, show_all_tests
        self._candidates = candidates
        self._num_drawn = 0
        self._stock: list[Proposal] = []
        """The proposals to draw, the newest first."""
        self._known: OrderedDict[str, None] = OrderedDict()
        self.taken_up: OrderedDict[str, None] = OrderedDict()
        """`id_of` the tasks made of proposals that were not refused."""
        self._skipped: Counter[str] = Counter()

    def draw(self, num_tasks: int) -> tuple[Task, ...]:
        """Returns the next tasks, proposals in their places while there are any. Raises TaskError as `rest` does."""
        numbers = range(self._num_drawn, self._num_drawn + num_tasks)
        turns = [math.floor((n + 1) * self._share) > math.floor(n * self._share) for n in numbers]
        if any(turns):
            self._refill()
        self._num_drawn += num_tasks
        return tuple(task for is_turn in turns for task in (self._proposed() if is_turn else self._rest.draw(1)))

    def _refill(self) -> None:
        fresh = []
        for proposal in self._collect():
            if proposal.proposal_id in self._known:
                continue
            self._known[proposal.proposal_id] = None
            reason = self._why_not(proposal)
            if reason is None:
                fresh.append(proposal)
                self.taken_up[id_of(to_task(proposal))] = None
            else:
                self._skipped[f"proposal_{reason}"] += 1
        self._stock = [*fresh, *self._stock][:MAX_STOCK]
        while self._candidates is not None and self._stock:
            self._candidates.add(to_task(self._stock.pop(), self._show_all_tests))
        for ids in (self._known, self.taken_up):
            while len(ids) > MAX_KNOWN:
                ids.popitem(last=False)

    def _proposed(self) -> tuple[Task, ...]:
        if self._candidates is not None and (task := self._candidates.draw(lambda: None)) is not None:
            return (task,)
        return (to_task(self._stock.pop(0), self._show_all_tests),) if self._stock else self._rest.draw(1)

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Passes all groups of a round that has ended to the other sources and the candidates."""
        self._rest.note(groups)
        if self._candidates is not None:
            self._candidates.note(groups)

    def take_skipped(self) -> Mapping[str, int]:
        """Returns the number of rows and proposals left out since the last call, by reason."""
        own, self._skipped = self._skipped, Counter()
        refused = {f"proposal_{reason}": count for reason, count in self._take_rejected().items()}
        return own + Counter(refused) + Counter(self._rest.take_skipped())

    def state_dict(self) -> dict[str, Any]:
        """Returns plain values, including the stock, so that a resumed node draws the same tasks."""
        candidates = self._candidates.tasks if self._candidates is not None else ()
        stock = [*self._stock, *(task.proposal for task in reversed(candidates) if task.proposal is not None)]
        return {
            "drawn": self._num_drawn,
            "stock": [dataclasses.asdict(proposal) for proposal in stock],
            "known": list(self._known),
            "taken_up": list(self.taken_up),
            "rest": dict(self._rest.state_dict()),
            **({"candidates": self._candidates.state_dict()} if self._candidates is not None else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where `state` was taken. Raises StateError as `rest` does."""
        self._rest.load_state_dict(state["rest"])
        self._num_drawn, self._stock = state["drawn"], [Proposal(**kept) for kept in state["stock"]]
        self._known = OrderedDict.fromkeys(state["known"])
        self.taken_up = OrderedDict.fromkeys(state.get("taken_up", ()))  # version 0.1.0 did not note it
        if self._candidates is not None and "candidates" in state:
            tasks = [to_task(proposal, self._show_all_tests) for proposal in self._stock]
            self._candidates.load_state_dict(state["candidates"], tasks)
            self._stock = []


def proposed_candidates(draw: TaskDraw, seed: int) -> Candidates | None:
    """Returns the candidates that proposals are drawn from; None if `tasks.draw` uses none."""
    return Candidates("proposals", seed, MAX_STOCK, MOST_GROUPS) if draw is TaskDraw.informative else None


def to_task(proposal: Proposal, show_all_tests: bool = True) -> Task:
    """Returns the task that a solver is asked."""
    shown = proposal.tests if show_all_tests else prompt.few_of(proposal.tests)
    return Task(
        origin=TaskOrigin.PROPOSER,
        question=prompt.with_tests(proposal.question, shown),
        tests=proposal.tests,
        difficulty=proposal.difficulty,
        proposal=proposal,
    )
