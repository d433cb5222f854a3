"""What a node reports of a round: its own reward and its vote. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from codezero.types import ScoredGroup


def own_reward(groups: Sequence[ScoredGroup]) -> float:
    """Sum of the rewards of the node's own rollouts."""
    return sum(reward.total for group in groups if not group.external for reward in group.rewards)


def winners(groups: Sequence[ScoredGroup], own_peer_id: str) -> tuple[str, ...]:
    """The peer with the highest mean reward a rollout, itself if it saw nobody (SPEC §2); ties go to the lower id."""
    totals: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        totals[group.group.peer_id] += [reward.total for reward in group.rewards]
    means = {peer: sum(rewards) / len(rewards) for peer, rewards in totals.items() if rewards}
    if not means:
        return (own_peer_id,)
    return (min(means, key=lambda peer: (-means[peer], peer)),)
