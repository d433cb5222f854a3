"""The exchanges of a node without a network, which do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codezero.proposals import Proposal, ProposalFeedback
from codezero.types import RolloutGroup, RoundId, ScoredGroup, SwarmRound


class SoloGossip:
    """Implements `ports.Gossip` for a node that trains alone."""

    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        return SwarmRound(round_id=round_id, local=tuple(groups))

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        pass


class SoloProposals:
    """Implements `ports.Proposals` for a node without proposers."""

    def collect(self) -> tuple[Proposal, ...]:
        return ()

    def take_rejected(self) -> Mapping[str, int]:
        return {}

    def give(self, groups: Sequence[ScoredGroup]) -> None:
        pass


class SoloSolvers:
    """Implements `ports.Solvers` for a proposer without solvers."""

    def remember(self, proposals: Iterable[Proposal]) -> None:
        pass

    def publish(self, proposals: Sequence[Proposal]) -> bool:
        return True

    def collect(self) -> tuple[ProposalFeedback, ...]:
        return ()

    def take_rejected(self) -> Mapping[str, int]:
        return {}

    def status(self) -> str:
        return ""
