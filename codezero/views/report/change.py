"""Whether something changed: differences of means with bootstrap intervals, and what they come to in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codezero.evaluate.intervals import Floats, central, resampled_means

MIN_EACH = 10
"""Values on each side; with fewer the percentile bootstrap's intervals are too narrow to be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanChange:
    """From one mean to another, with the interval of the difference; no interval where there are too few values."""

    before: float
    after: float
    count: int
    """Values on the smaller side."""
    low: float | None
    high: float | None

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def verdict(self) -> str:
        """rose, fell, no clear change, or too few to tell."""
        if self.low is None or self.high is None:
            return "too few to tell"
        if self.low > 0:
            return "rose"
        return "fell" if self.high < 0 else "no clear change"


def between_thirds(values: Sequence[float | None]) -> MeanChange | None:
    """From the first third of the known values to the last, each third drawn again on its own; None with fewer than
    two values."""
    found = _finite(values)
    if len(found) < 2:
        return None
    third = max(1, len(found) // 3)
    first, last = np.asarray(found[:third]), np.asarray(found[-third:])
    rng = np.random.default_rng(0)
    return _change(first, last, resampled_means(last, rng) - resampled_means(first, rng))


def paired(before: Sequence[float], after: Sequence[float]) -> MeanChange | None:
    """Over pairs, which are drawn again as pairs; None without any."""
    if not before:
        return None
    first, last = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    return _change(first, last, resampled_means(last - first, np.random.default_rng(0)))


def _change(first: Floats, last: Floats, differences: Floats) -> MeanChange:
    count = min(len(first), len(last))
    low = high = None
    if count >= MIN_EACH:
        low, high = central(differences)
    return MeanChange(before=float(first.mean()), after=float(last.mean()), count=count, low=low, high=high)


def _finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]
