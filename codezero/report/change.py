"""Whether something changed: differences of means with bootstrap intervals, and what they come to in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
CONFIDENCE = 0.95
AT_ONCE = 1_000_000
"""Values drawn at a time, so that long runs need little memory."""
MIN_EACH = 10
"""Values on each side; with fewer the percentile bootstrap's intervals are too narrow to be believed."""


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
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


def between_thirds(values: Sequence[float | None]) -> Change | None:
    """From the first third of the known values to the last, each third drawn again on its own; None with fewer than
    two values."""
    found = _finite(values)
    if len(found) < 2:
        return None
    third = max(1, len(found) // 3)
    first, last = np.asarray(found[:third]), np.asarray(found[-third:])
    rng = np.random.default_rng(0)
    return _change(first, last, _means(rng, last) - _means(rng, first))


def paired(before: Sequence[float], after: Sequence[float]) -> Change | None:
    """Over pairs, which are drawn again as pairs; None without any."""
    if not before:
        return None
    first, last = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    return _change(first, last, _means(np.random.default_rng(0), last - first))


def _change(first: Floats, last: Floats, differences: Floats) -> Change:
    count = min(len(first), len(last))
    low = high = None
    if count >= MIN_EACH:
        low, high = (float(end) for end in np.quantile(differences, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    return Change(before=float(first.mean()), after=float(last.mean()), count=count, low=low, high=high)


def _means(rng: np.random.Generator, values: Floats) -> Floats:
    """Means of `RESAMPLES` samples, each drawn from the values with replacement, some at a time: [RESAMPLES]."""
    at_once = max(1, AT_ONCE // len(values))
    return np.concatenate(
        [
            values[rng.integers(0, len(values), (min(at_once, RESAMPLES - start), len(values)))].mean(axis=1)
            for start in range(0, RESAMPLES, at_once)
        ]
    )


def _finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]
