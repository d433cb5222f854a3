"""The common parts of judges behind an HTTP API: they read probabilities and name the judge in errors."""

from __future__ import annotations

import math
from collections.abc import Iterable

from codezero.errors import EvaluatorError
from codezero.llm.chat_server import Position
from codezero.llm.client import Purpose
from codezero.prompts.evaluator import NO, YES

JUDGING = Purpose(who="the judge", section="evaluator", error=EvaluatorError)
NUM_ALTERNATIVES = 20
"""The number of most likely tokens to request, the most that these protocols report."""


def shares(positions: Iterable[Position]) -> tuple[float, float] | None:
    """Returns the probabilities of Yes and No at the first position, normalised to sum to 1; case and surrounding space
    do not matter. None if there is no position, or neither is among its alternatives."""
    first = next(iter(positions), None)
    if first is None:
        return None
    known = {other.token: other.logprob for other in first.top_logprobs}
    known.setdefault(first.token, first.logprob)
    yes, no = (
        sum(math.exp(min(logprob, 0.0)) for token, logprob in known.items() if _same(token, choice))
        for choice in (YES, NO)
    )
    return (yes / (yes + no), no / (yes + no)) if yes + no > 0.0 else None


def _same(token: str, choice: str) -> bool:
    return token.strip().casefold() == choice.casefold()
