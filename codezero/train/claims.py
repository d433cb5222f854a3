"""The log-probs that peers send with their attempts: their form, and how much they count.

A claim may be a lie. One that is not plausible counts as if nothing had been sent. In one that is, the learner caps the
ratio of every token, so no lie makes an attempt weigh more than `train.importance_cap` times one without log-probs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

BYTES = 2
"""The bytes of a log-prob: a little-endian float16 (docs/wire.md)."""
MOST_GAP = 0.5
"""The largest mean |difference| of claimed and own log-probs of an attempt, as a share of that of a claim of certainty,
which is 0 for each token (docs/learning.md has why, and `benchmarks/claims.py` what it believes)."""


def packed(logprobs: Sequence[float]) -> bytes:
    """Encodes log-probs. A rounding error above 0 becomes 0."""
    return struct.pack(f"<{len(logprobs)}e", *[min(one, 0.0) for one in logprobs])


def unpacked(raw: bytes, num_tokens: int) -> tuple[float, ...] | None:
    """Returns the log-probs of so many tokens; None unless the bytes are so many finite numbers, none above 0."""
    if len(raw) != BYTES * num_tokens:
        return None
    found = struct.unpack(f"<{num_tokens}e", raw)
    return found if all(-math.inf < one <= 0 for one in found) else None


def log_ratios(claimed: Sequence[float], own: Sequence[float]) -> tuple[float, ...] | None:
    """Returns own minus claimed log-probs; None if the claim is not plausible beside the own ones."""
    ratios = tuple(mine - theirs for mine, theirs in zip(own, claimed, strict=True))
    is_plausible = math.fsum(map(abs, ratios)) <= -MOST_GAP * math.fsum(own)  # False if an own one is not a number
    return ratios if is_plausible else None
