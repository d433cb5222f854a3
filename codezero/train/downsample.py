"""Chooses the attempts of a group to train on: those whose rewards vary most (PODS, Xu et al., arXiv 2504.13818). All
attempts are published and judged."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from codezero.types import ScoredGroup


def most_varied(group: ScoredGroup, most: int) -> ScoredGroup:
    """Returns the group with at most `most` of its scored attempts, the others masked; with 0 it is unchanged.

    The subset of largest variance consists of some highest and some lowest rewards (proved in the paper), so only
    `most` + 1 subsets are compared. A group with rewards that are not finite is unchanged; the learner refuses it.
    """
    totals = {i: reward.total for i, reward in enumerate(group.rewards) if reward is not None}
    if most == 0 or len(totals) <= most or not all(map(math.isfinite, totals.values())):
        return group
    rising = sorted(totals, key=lambda i: totals[i])
    subsets = (rising[:low] + rising[len(rising) - most + low :] for low in range(most + 1))
    kept = max(subsets, key=lambda subset: statistics.pvariance([totals[i] for i in subset]))
    return replace(group, rewards=tuple(one if i in kept else None for i, one in enumerate(group.rewards)))
