"""What the loop asks of the stages. Each stage of `loop.run_round` calls one of these; tests replace them one by one.

A component that raises ends the node, except where a docstring names an outcome as data (an outage, an empty round).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from codezero.proposals import Proposal, ProposalFeedback
from codezero.types import (
    Receipt,
    RolloutGroup,
    RoundId,
    RoundReport,
    ScoredGroup,
    SwarmRound,
    Task,
    UpdateReport,
)

Progress = Callable[[str, int, int], None]
"""`progress(stage, done, total)`: called as a long stage advances; must be cheap and never raise."""


class Resumable(Protocol):
    """A part with state that a checkpoint must carry. The mapping holds plain values and tensors only."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class TaskSource(Resumable, Protocol):
    def draw(self, num_tasks: int) -> tuple[Task, ...]:
        """The next tasks. Raises TaskError when none is left to draw from."""
        ...

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Hears what became of the groups of the round that drew last: which tasks come next may depend on it."""
        ...

    def take_skipped(self) -> Mapping[str, int]:
        """Rows skipped since the last call, by reason."""
        ...


class Solver(Resumable, Protocol):
    def solve(self, tasks: Sequence[Task], policy_version: int) -> tuple[RolloutGroup, ...]:
        """One group of G rollouts a task, in order; a task whose prompt does not fit is left out and counted."""
        ...

    def take_skipped(self) -> Mapping[str, int]:
        """Tasks left out since the last call, by reason."""
        ...


class Gossip(Protocol):
    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        """Publishes own groups and collects peers'. No peer is a normal outcome.

        `elapsed_s` is what the round has taken so far: how long to wait for others is a share of it.
        """
        ...

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Hears what became of the groups that it collected: authors of hostile ones may lose their turns."""
        ...


class Evaluator(Protocol):
    def score(self, swarm_round: SwarmRound) -> tuple[ScoredGroup, ...]:
        """Every group of the round with verdicts and rewards; masked or unscored where it cannot tell."""
        ...


class Selection(Protocol):
    def choose(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> tuple[ScoredGroup, ...]:
        """The groups to train on: all own ones and at most J of the scored peers' groups whose rewards differ."""
        ...


class Feedback(Protocol):
    def give(self, groups: Sequence[ScoredGroup]) -> None:
        """Tells the proposers of own, scored groups what the attempts came to. A network that is away is no error."""
        ...


class Proposals(Feedback, Protocol):
    """A solver's connection to proposers."""

    def collect(self) -> tuple[Proposal, ...]:
        """Proposals that were not handed out before. None at all is a normal outcome."""
        ...

    def take_rejected(self) -> Mapping[str, int]:
        """What peers published that was dropped since the last call, by reason."""
        ...


class Solvers(Protocol):
    """A proposer's connection to solvers. Where there is no network, nothing comes back."""

    def remember(self, proposals: Iterable[Proposal]) -> None:
        """Takes in proposals that were published before a restart, the newest last."""
        ...

    def publish(self, proposals: Sequence[Proposal]) -> bool:
        """Shows proposals, the newest last, and with them the latest before them; False if no node keeps them."""
        ...

    def collect(self) -> tuple[ProposalFeedback, ...]:
        """What peers say of own proposals and was not handed out before."""
        ...

    def take_rejected(self) -> Mapping[str, int]:
        """Feedback that was dropped since the last call, by reason."""
        ...

    def status(self) -> str:
        """The state of the network in a few words; empty without one."""
        ...


class Learner(Resumable, Protocol):
    policy_version: int

    def step(self, groups: Sequence[ScoredGroup]) -> UpdateReport:
        """One policy update on all usable groups. Nothing usable, or a loss that is not finite, is a skipped update."""
        ...


class Ledger(Protocol):
    def next_round(self, after: RoundId | None) -> RoundId:
        """The round to play now, later than `after`; blocks while the swarm's clock has not moved on."""
        ...

    def settle(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> Receipt | None:
        """Records the round's reward and vote exactly once, however often it is called for the same round."""
        ...

    def status(self) -> str:
        """What is in the way of the ledger, in words; empty while nothing is."""
        ...


class Observer(Protocol):
    """Watches a round as it goes on. What it is told must be cheap to take in; it never raises."""

    def stage(self, name: str) -> None:
        """A stage begins."""
        ...

    def groups(self, round_id: RoundId, scored: Sequence[ScoredGroup], chosen: Sequence[ScoredGroup]) -> None:
        """All groups of the round have been judged, and these chosen to train on."""
        ...


class Monitor(Protocol):
    def report(self, report: RoundReport) -> None:
        """Shows and stores a finished round."""
        ...
