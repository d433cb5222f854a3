"""A node without a network: what it publishes is all there is."""

from __future__ import annotations

from collections.abc import Sequence

from codezero.types import RolloutGroup, RoundId, SwarmRound


class SoloGossip:
    """ports.Gossip of a node that trains alone."""

    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        return SwarmRound(round_id=round_id, local=tuple(groups))
