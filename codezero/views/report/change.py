"""Differences of means with bootstrap intervals, and verdicts on them in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codezero.evaluate.intervals import central, resampled_means

MIN_EACH = 10
"""The least number of pairs; with fewer the percentile bootstrap's intervals are too narrow to be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanChange:
    """The means before and after, with the interval of the difference; no interval if there are too few values."""

    before: float
    after: float
    count: int
    """The number of pairs."""
    low: float | None
    high: float | None

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def verdict(self) -> str:
        """The change in words: rose, fell, no clear change, or too few to tell."""
        if self.low is None or self.high is None:
            return "too few to tell"
        if self.low > 0:
            return "rose"
        return "fell" if self.high < 0 else "no clear change"


def paired(before: Sequence[float], after: Sequence[float]) -> MeanChange | None:
    """Returns the change over pairs, which are resampled as pairs; None without any."""
    if not before:
        return None
    first, last = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    low = high = None
    if len(first) >= MIN_EACH:
        low, high = central(resampled_means(last - first, np.random.default_rng(0)))
    return MeanChange(before=float(first.mean()), after=float(last.mean()), count=len(first), low=low, high=high)


def interval(change: MeanChange) -> str:
    """Returns a difference with its interval, as in +0.12 [+0.03, +0.21]."""
    if change.low is None or change.high is None:
        return signed(change.difference)
    return f"{signed(change.difference)} [{signed(change.low)}, {signed(change.high)}]"


def signed(value: float | None) -> str:
    """Returns a number with two digits and its sign; 0.00 has none."""
    if value is None:
        return "unknown"
    return f"{value:+.2f}" if f"{abs(value):.2f}" != "0.00" else "0.00"
