"""The reward of a draft for its writer: how much it teaches solvers."""

from __future__ import annotations

INVALID_REWARD = -0.5
"""The reward of a draft that the checks reject: less than that of a valid problem that teaches nothing. The number is a
choice without a source."""


def learnability(success: float) -> float:
    """Returns 4 s (1 - s) for solvers' success rate s in 0..1: 1 at one half, 0 where all attempts succeed or none do.

    This is the variance of an attempt's outcome, scaled to 1: the learnability of Rutherford et al. (arXiv 2408.15099),
    used for language models by Foster et al. (arXiv 2502.12272).
    """
    return 4 * success * (1 - success)
