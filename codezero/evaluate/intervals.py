"""Means over problems with their 95 % intervals, by the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codezero.evaluate.metrics import CONFIDENCE, Estimate

RESAMPLES = 2_000
AT_ONCE = 1_000_000
"""The most values drawn at a time, which limits memory."""

Floats = NDArray[np.float64]


def bootstrap(values: Sequence[float]) -> Estimate:
    """Returns the mean with its percentile bootstrap interval; equal values always give the same interval."""
    array = np.asarray(values, float)
    low, high = central(resampled_means(array, np.random.default_rng(0)))
    return Estimate(value=float(array.mean()), low=low, high=high)


def resampled_means(values: Floats, rng: np.random.Generator) -> Floats:
    """Returns the means of `RESAMPLES` samples, each drawn from the values with replacement: [RESAMPLES]."""
    at_once = max(1, AT_ONCE // len(values))
    return np.concatenate(
        [
            values[rng.integers(0, len(values), (min(at_once, RESAMPLES - start), len(values)))].mean(axis=1)
            for start in range(0, RESAMPLES, at_once)
        ]
    )


def central(drawn: ArrayLike) -> tuple[float, float]:
    """Returns the ends of the central 95 % of the drawn values, NaN left out."""
    low, high = np.nanquantile(np.asarray(drawn, float), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
