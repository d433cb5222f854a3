"""Differences of means with bootstrap intervals, and verdicts on them in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codezero.evaluate.intervals import bootstrap

MIN_EACH = 10
"""The least number of pairs; with fewer the percentile bootstrap's intervals are too narrow to be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanChange:
    """The mean after less the mean before, with its interval; no interval if there are too few values."""

    difference: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """The change in words: rose, fell, no clear change, or too few to tell."""
        if self.low is None or self.high is None:
            return "too few to tell"
        if self.low > 0:
            return "rose"
        return "fell" if self.high < 0 else "no clear change"


def paired(before: Sequence[float], after: Sequence[float]) -> MeanChange:
    """Returns the change over one or more pairs, which are resampled as pairs."""
    found = bootstrap([last - first for first, last in zip(before, after, strict=True)])
    has_enough = len(before) >= MIN_EACH
    return MeanChange(
        difference=found.value, low=found.low if has_enough else None, high=found.high if has_enough else None
    )


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
