"""What a node reports of a round: its own reward and its vote. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from codezero.types import ScoredGroup


def own_reward(groups: Sequence[ScoredGroup]) -> float:
    """Sum of the rewards of the node's own rollouts."""
    return sum(reward.total for group in groups if not group.external for reward in group.rewards)


def winners(groups: Sequence[ScoredGroup], own_peer_id: str, banned: Collection[str] = ()) -> tuple[str, ...]:
    """The other peer with the highest total reward of the round as this node scored it, itself only if it saw nobody
    (SPEC §2). Never one that it has banned; ties go to the lower id."""
    totals: dict[str, float] = defaultdict(float)
    for group in groups:
        if group.external and group.scored and group.group.peer_id not in banned:
            totals[group.group.peer_id] += sum(reward.total for reward in group.rewards)
    if not totals:
        return (own_peer_id,)
    return (min(totals, key=lambda peer: (-totals[peer], peer)),)
