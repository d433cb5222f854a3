"""The exchange of a node without a network, which does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codezero.proposals import Proposal
from codezero.types import RolloutGroup, RoundId, ScoredGroup, SwarmRound


class Solo:
    """Implements `ports.Gossip`, `ports.Proposals` and `ports.Solvers` for a node that trains alone."""

    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        return SwarmRound(round_id=round_id, local=tuple(groups))

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        pass

    def give(self, groups: Sequence[ScoredGroup]) -> None:
        pass

    def remember(self, proposals: Iterable[Proposal]) -> None:
        pass

    def publish(self, proposals: Sequence[Proposal]) -> None:
        pass

    def collect(self) -> tuple[()]:
        return ()

    def take_rejected(self) -> Mapping[str, int]:
        return {}

    def status(self) -> str:
        return ""
