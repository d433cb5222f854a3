"""Chooses the peers' groups that a node trains on beside its own: SAPO (arXiv 2509.08721), with fair shares.

pool ─► scored, rewards differ ─► addresses take turns ─► within one its peers ─► within one its groups ─► first J

An address gets a second group only after every other address that has groups left, and likewise a peer within its
address. So many identities at an address, or many groups of a peer, take nothing from others. The strategy only sets
the order of addresses, peers and groups.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean

from codezero.config import Strategy, SwarmConfig, Weighting
from codezero.network.shares import in_turns
from codezero.network.weighting import AccuracyWeights
from codezero.types import RoundId, ScoredGroup

Rank = Callable[[Sequence[ScoredGroup], Random], float]
"""A function that ranks an address, a peer or a group by all groups that it has (`shares.in_turns`)."""

_SHARES: tuple[Callable[[ScoredGroup], str], ...] = (
    lambda group: group.group.address,
    lambda group: group.group.peer_id,
)


class SapoSelection:
    """Chooses what to train on. The choice depends on seed, round and groups, not on the order of arrival."""

    def __init__(self, config: SwarmConfig, seed: int) -> None:
        self._num_external, self._rank, self._seed = config.num_external, _RANKS[config.strategy], seed
        self._weights = AccuracyWeights() if config.weighting is Weighting.accuracy else None

    def choose(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> tuple[ScoredGroup, ...]:
        """Returns all own groups in their order, then at most J scored ones of peers whose rewards differ, with their
        weights."""
        own = [group for group in groups if not group.external]
        pool = [group for group in groups if group.external and group.has_advantage]
        pool.sort(key=lambda g: (g.group.address, g.group.peer_id, g.group.task.task_id, g.group.age))
        rng = Random(f"{self._seed}/{round_id.number}/{round_id.stage}")
        drawn = in_turns(pool, _SHARES, lambda groups: self._rank(groups, rng))
        chosen = (*own, *drawn[: self._num_external])
        return chosen if self._weights is None else self._weights.weigh(groups, chosen)


def _uniform(groups: Sequence[ScoredGroup], rng: Random) -> float:
    return rng.random()


def _by_reward(groups: Sequence[ScoredGroup], rng: Random) -> float:
    """Ranks so that each next turn is drawn with probability softmax(mean reward) among the rest: exponential keys with
    rate exp(mean) (Efraimidis and Spirakis 2006, doi 10.1016/j.ipl.2005.11.003), as logarithms so that none
    overflows."""
    mean = fmean(reward.total for group in groups for reward in group.earned)
    return math.log(max(rng.expovariate(1.0), sys.float_info.min)) - mean


def _by_freshness(groups: Sequence[ScoredGroup], rng: Random) -> float:
    """Ranks by age, the lowest first, and equal ages in random order."""
    return min(group.group.age for group in groups) + rng.random()


_RANKS: dict[Strategy, Rank] = {
    Strategy.uniform: _uniform,
    Strategy.reward: _by_reward,
    Strategy.fresh: _by_freshness,
}
