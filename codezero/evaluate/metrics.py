"""average@k and pass@k of scored groups, and the type of a figure with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from codezero.types import ScoredGroup

CONFIDENCE = 0.95
"""The confidence level of every interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float


def pass_at_k(n: int, c: int, k: int) -> float:
    """Returns the unbiased estimate of P(at least one of k attempts is correct) from n attempts with c correct ones:
    1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374)."""
    return 1.0 - comb(n - c, k) / comb(n, k)


def averages(groups: Sequence[ScoredGroup]) -> tuple[float | None, float | None]:
    """Returns mean average@k and mean pass@k over the scored groups, where k is the number of each group's rewarded
    rollouts; None if no group is scored."""
    scored = [group for group in groups if group.scored]
    if not scored:
        return None, None
    counts = [(len(group.rewarded), group.num_correct) for group in scored]
    return sum(c / n for n, c in counts) / len(counts), sum(c > 0 for _, c in counts) / len(counts)
