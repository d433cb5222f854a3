"""Tests whether a model got better at a fixed set of problems, by intervals that hold however often one looks.

A pass solves every problem once more; the first one is the start. After the passes of `is_look`, the mean of the newer
half of them is compared with the start, problem by problem, by a paired t-interval. All looks together are wrong with a
probability of at most 5 %, of which each look spends a part (Bonferroni's inequality, with error spent over looks as in
Lan & DeMets 1983, Biometrika 70, 659-663). So nothing is assumed about the dependence of looks: they share the start,
and a model on a random walk is the same model at the next look. An e-process of single outcomes would assume that the
start is known, which it is not, or that outcomes are independent, which those of one problem are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist, fmean

from codezero.evaluate.metrics import CONFIDENCE, Estimate

Rates = Sequence[float]
"""The share of right solutions for each problem."""

OF_PEAKS = 0.2
"""The share of a look's error that is spent on falls from earlier looks; the rest is for the change since the start."""
EVEN = 4
"""A parameter of how error is spent over looks, more evenly if larger; with 4 the first twelve have three quarters."""
PRIOR = 0.4
"""The change of two problems, one better and one worse by this share, that are added to the differences to compute
their standard deviation. Without them 20 % of runs without a change raise an alarm if hardly a problem is ever solved,
since few differences are often equal by chance."""


class Direction(str, Enum):
    """The change of the model since earlier passes, as far as it is known."""

    UNKNOWN = "unknown"
    RISING = "rising"
    LEVEL = "level"
    """Neither better nor worse than at the start beyond chance."""
    FALLING = "falling"
    """Worse than at the start or at an earlier look beyond chance, even where it is better than at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A significant change for the worse."""

    since: int
    """The last pass of the earlier look that was better; 0 is the start."""
    change: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The result of the newest look. Shares are means over problems, in 0..1."""

    first: int
    last: int
    """The first and the last pass of the look; pass 0 is the start."""
    before: float
    after: float
    change: Estimate
    """after - before, with 95 % confidence over all looks, future ones included."""
    fall: Fall | None
    """The fall whose interval is farthest below 0; None without a fall."""

    @property
    def direction(self) -> Direction:
        if self.fall is not None:
            return Direction.FALLING
        return Direction.RISING if self.change.low > 0 else Direction.LEVEL


def is_look(num_passes: int) -> bool:
    """Returns whether there is a look after this many passes, the start not counted: 1, 2, 3, 4, 6, 8, 12, 16, ..."""
    power = 1 << max(num_passes.bit_length() - 1, 0)
    return num_passes > 0 and num_passes in (power, power * 3 // 2)


def newest(passes: Sequence[Rates]) -> Gain | None:
    """Returns the newest look at these passes, the start first; None before the first look."""
    looks = [count for count in range(1, len(passes)) if is_look(count)]
    if not looks:
        return None
    means = [_mean(passes, count) for count in looks]
    error = (1 - CONFIDENCE) * EVEN / ((len(looks) + EVEN - 1) * (len(looks) + EVEN))  # sums to 5 %
    change = _paired(passes[0], means[-1], error * (1 - OF_PEAKS))
    peaks = [_paired(mean, means[-1], error * OF_PEAKS / (len(looks) - 1)) for mean in means[:-1]]
    falls = [Fall(since=since, change=one) for since, one in zip([0, *looks], [change, *peaks], strict=False)]
    return Gain(
        first=_first(looks[-1]),
        last=looks[-1],
        before=fmean(passes[0]),
        after=fmean(means[-1]),
        change=change,
        fall=min((one for one in falls if one.change.high < 0), key=lambda one: one.change.high, default=None),
    )


def _first(last: int) -> int:
    """Returns the first pass of the newer half of those from 1 to `last`."""
    return last // 2 + 1


def _mean(passes: Sequence[Rates], last: int) -> Rates:
    half = passes[_first(last) : last + 1]
    return [sum(rates) / len(half) for rates in zip(*half, strict=True)]


def _paired(before: Rates, after: Rates, error: float) -> Estimate:
    """Returns the mean difference over problems with its t-interval."""
    differences = [new - old for old, new in zip(before, after, strict=True)]
    num, value = len(differences), fmean(differences)
    spread = math.sqrt((sum((one - value) ** 2 for one in differences) + 2 * PRIOR**2) / (num - 1))
    half = _t(1 - error / 2, num - 1) * spread / math.sqrt(num)
    return Estimate(value=value, low=value - half, high=value + half)


def _t(quantile: float, freedom: int) -> float:
    """Returns a quantile of Student's t, by Fisher's expansion (Abramowitz & Stegun 1964, 26.7.5)."""
    z, n = NormalDist().inv_cdf(quantile), freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
