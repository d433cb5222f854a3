"""The interfaces of the parts of a node that there are several implementations of. Most are what a stage of
`loop.run_round` calls; tests replace them one by one.

An error that a part raises ends the node. Outcomes that a docstring calls normal are returned, not raised, such as an
outage or an empty round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from codezero.proposals import Proposal, ProposalFeedback
from codezero.reports import UpdateReport
from codezero.types import RolloutGroup, RoundId, ScoredGroup, SwarmRound, Task

Progress = Callable[[str, int, int], None]
"""A function `progress(stage, done, total)` that is called as a long stage advances; must be cheap and never raise."""


class Resumable(Protocol):
    """A part whose state is saved in checkpoints. The mapping holds plain values and tensors only."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class TaskSource(Protocol):
    def draw(self, num_tasks: int) -> tuple[Task, ...]:
        """Returns the next tasks. Raises TaskError: there is none left to draw from."""
        ...

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Records the scores of the last drawn tasks' groups, on which the next tasks may depend."""
        ...

    def take_skipped(self) -> Mapping[str, int]:
        """Returns the numbers of rows skipped since the last call, by reason."""
        ...


class Solver(Protocol):
    def solve(self, tasks: Sequence[Task], policy_version: int) -> tuple[RolloutGroup, ...]:
        """Returns one group of G rollouts per task, in order; leaves out and counts tasks whose prompts do not fit."""
        ...

    def take_skipped(self) -> Mapping[str, int]:
        """Returns the numbers of tasks left out since the last call, by reason."""
        ...


class Gossip(Protocol):
    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        """Publishes own groups and returns them with those of peers. To find no peer is a normal outcome.

        `elapsed_s` is the duration of the round so far; the time to wait for peers is a share of it.
        """
        ...

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Records the scores of collected groups, so that authors of hostile ones may be skipped."""
        ...


class Proposals(Protocol):
    """A solver's connection to proposers."""

    def give(self, groups: Sequence[ScoredGroup]) -> None:
        """Sends the results of own, scored groups to the proposers of their tasks. An unreachable network is no
        error."""
        ...

    def collect(self) -> tuple[Proposal, ...]:
        """Returns proposals that were not returned before. An empty result is a normal outcome."""
        ...

    def take_rejected(self) -> Mapping[str, int]:
        """Returns the numbers of peers' publications dropped since the last call, by reason."""
        ...


class Solvers(Protocol):
    """A proposer's connection to solvers. Without a network there is no feedback."""

    def remember(self, proposals: Iterable[Proposal]) -> None:
        """Restores proposals that were published before a restart, the newest last."""
        ...

    def publish(self, proposals: Sequence[Proposal]) -> None:
        """Publishes proposals, the newest last, together with the latest earlier ones, which would expire otherwise:
        without new ones these are published again. `status` says if no node keeps them."""
        ...

    def collect(self) -> tuple[ProposalFeedback, ...]:
        """Returns the feedback on own proposals in peers' new records; a record repeats its peer's earlier feedback."""
        ...

    def take_rejected(self) -> Mapping[str, int]:
        """Returns the numbers of feedback dropped since the last call, by reason."""
        ...

    def status(self) -> str:
        """Returns the state of the network in a few words; empty without a network."""
        ...


class Learner(Resumable, Protocol):
    @property
    def policy_version(self) -> int: ...

    def step(self, groups: Sequence[ScoredGroup]) -> UpdateReport:
        """Makes one policy update on all usable groups. Without any, or with a loss that is not finite, it is
        skipped."""
        ...


class Ledger(Protocol):
    def next_round(self, after: RoundId | None) -> RoundId:
        """Returns the round to play now, which is later than `after`; blocks until the swarm's count has reached it."""
        ...

    def settle(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> None:
        """Records the round's reward and vote exactly once, however often it is called for the same round."""
        ...

    def status(self) -> str:
        """Returns the ledger's problem in words; empty without one."""
        ...
