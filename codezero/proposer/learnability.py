"""What a draft of a problem earns its writer: as much as it teaches the solvers."""

from __future__ import annotations

INVALID_REWARD = -0.5
"""Of a draft that the checks reject: below that of a valid problem that teaches nothing. Our choice."""


def learnability(success: float) -> float:
    """4 s (1 - s) for solvers' success rate s in 0..1: 1 where they succeed half the time, 0 where all or none do.

    The variance of an attempt's outcome, scaled to 1: the learnability of Rutherford et al. (arXiv 2408.15099), used
    for language models by Foster et al. (arXiv 2502.12272).
    """
    return 4 * success * (1 - success)
