"""The advantages of GRPO: rewards relative to the rollout's group (DeepSeekMath, arXiv 2402.03300, eq. 3)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from codezero.config import RewardScale

EPSILON = 1e-4
"""The number added to the standard deviation before dividing by it, as in TRL."""


def group_advantages(
    rewards: Sequence[Sequence[float]], scale: RewardScale, least: float = 0.0
) -> tuple[tuple[float, ...], ...]:
    """Returns the advantages of rewards [groups][G], in the same shape; groups may differ in size.

    An advantage is the reward minus its group's mean, divided by the unbiased standard deviation (plus EPSILON) of the
    group, or of all rewards of the batch (Lite PPO, arXiv 2508.08221), or not divided (Dr. GRPO, arXiv 2503.20783).
    It is exactly 0 in a group of equal rewards, such as a group of one, and where its magnitude is below `least` times
    the largest of the batch.
    """
    everything = [reward for group in rewards for reward in group]
    batch_std = statistics.stdev(everything) if scale is RewardScale.batch and len(everything) > 1 else 0.0
    advantages = [_centred(group, scale, batch_std) for group in rewards]
    bound = least * max((abs(one) for group in advantages for one in group), default=0.0)
    return tuple(tuple(one if abs(one) >= bound else 0.0 for one in group) for group in advantages)


def _centred(rewards: Sequence[float], scale: RewardScale, batch_std: float) -> tuple[float, ...]:
    # The mean of equal floats may differ from them in the last bit, so the rewards themselves are compared.
    if len(set(rewards)) < 2:
        return (0.0,) * len(rewards)
    mean = statistics.fmean(rewards)
    if scale is RewardScale.none:
        return tuple(reward - mean for reward in rewards)
    std = statistics.stdev(rewards) if scale is RewardScale.group else batch_std
    return tuple((reward - mean) / (std + EPSILON) for reward in rewards)
