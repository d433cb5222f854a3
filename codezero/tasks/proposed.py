"""Tasks from peers' proposals: a share of all draws while there are any, the rest from the node's own sources."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codezero.errors import StateError
from codezero.ports import TaskSource
from codezero.prompts import solver as prompt
from codezero.proposals import Proposal
from codezero.tasks.sources import FIX, count_in
from codezero.tasks.withheld import id_of
from codezero.types import Task, TaskOrigin

MAX_STOCK = 64
"""Proposals kept for later rounds; of more, the oldest go, for the level has moved on since."""
MAX_KNOWN = 4096
"""Ids of proposals that were taken up or refused, so that none comes twice; and as many of those taken up."""


class WithProposals:
    """ports.TaskSource. Draw number n is of a proposal, if there is one, whenever n x share passes a whole number."""

    def __init__(
        self,
        rest: TaskSource,
        share: float,
        collect: Callable[[], Sequence[Proposal]],
        why_not: Callable[[Proposal], str | None],
        take_rejected: Callable[[], Mapping[str, int]] = dict,
        show_all_tests: bool = True,
    ) -> None:
        """`collect` gives what proposers have published, `why_not` the reason to refuse a proposal, and `take_rejected`
        counts what came that was none, by reason, since it was last called."""
        self._rest, self._share, self._collect, self._why_not = rest, share, collect, why_not
        self._take_rejected, self._show_all_tests = take_rejected, show_all_tests
        self._num_drawn = 0
        self._stock: list[Proposal] = []
        """The newest first."""
        self._known: OrderedDict[str, None] = OrderedDict()
        self.taken_up: OrderedDict[str, None] = OrderedDict()
        """`id_of` the tasks made of proposals that were not refused."""
        self._skipped: Counter[str] = Counter()

    def draw(self, num_tasks: int) -> tuple[Task, ...]:
        """The next tasks; proposals at the places that are theirs, as far as they go. Raises TaskError: as `rest`."""
        turns = [self._is_a_proposals_turn(self._num_drawn + i) for i in range(num_tasks)]
        if any(turns):
            self._refill()
        self._num_drawn += num_tasks
        return tuple(task for is_turn in turns for task in (self._proposed() if is_turn else self._rest.draw(1)))

    def _is_a_proposals_turn(self, number: int) -> bool:
        return math.floor((number + 1) * self._share) > math.floor(number * self._share)

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
        for ids in (self._known, self.taken_up):
            while len(ids) > MAX_KNOWN:
                ids.popitem(last=False)

    def _proposed(self) -> tuple[Task, ...]:
        return (to_task(self._stock.pop(0), self._show_all_tests),) if self._stock else self._rest.draw(1)

    def take_skipped(self) -> Mapping[str, int]:
        """Rows and proposals left out since the last call, by reason."""
        own, self._skipped = self._skipped, Counter()
        refused = {f"proposal_{reason}": count for reason, count in self._take_rejected().items()}
        return own + Counter(refused) + Counter(self._rest.take_skipped())

    def state_dict(self) -> dict[str, Any]:
        """Plain values: the stock goes with it, so that a resumed node draws alike."""
        return {
            "drawn": self._num_drawn,
            "stock": [dataclasses.asdict(proposal) for proposal in self._stock],
            "known": list(self._known),
            "taken_up": list(self.taken_up),
            "rest": dict(self._rest.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises StateError: the state is damaged."""
        if "rest" not in state:  # that of a node from before there were proposals
            self._rest.load_state_dict(state)
            return
        num_drawn = count_in(state, "drawn")
        try:
            stock, rest = [Proposal(**kept) for kept in state["stock"]], state["rest"]
            known = OrderedDict.fromkeys(state["known"])
            taken_up = OrderedDict.fromkeys(state.get("taken_up", ()))  # version 0.1.0 did not note it
        except (KeyError, TypeError) as error:
            raise StateError(f"task position in state_dir is damaged ({error}): {FIX}") from error
        self._rest.load_state_dict(rest)
        self._num_drawn, self._stock, self._known, self.taken_up = num_drawn, stock, known, taken_up


def to_task(proposal: Proposal, show_all_tests: bool = True) -> Task:
    """What a solver is asked."""
    shown = proposal.tests if show_all_tests else prompt.few_of(proposal.tests)
    return Task(
        origin=TaskOrigin.PROPOSER,
        question=prompt.with_tests(proposal.question, shown),
        tests=proposal.tests,
        difficulty=proposal.difficulty,
        proposal=proposal,
    )
