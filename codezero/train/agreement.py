"""Checks that the sampler draws from the policy that learns, by comparing both log-probs of the sampled tokens.

Both have the same weights, or a quantised copy of them; different arithmetic changes log-probs a little. A larger
difference shows another policy: a stale adapter, a wrong base, another temperature or position.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from torch import Tensor

from codezero.config import RolloutEngine

logger = logging.getLogger(__name__)

BOUND = 0.005
"""The largest normal median of |difference| in a round, in nats. At version 0 the 0.5B model has 0.0001 to 0.0004 in
llama.cpp (`benchmarks/rollout.py`), and in float32 no measurable one. A policy that is less sure of its tokens, or in
bfloat16, has more; neither was measured, so the bound leaves room for them."""
WARN_AT = 2.0
"""The multiple of the bound above which a round is reported as a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The difference between sampler and learner on the trained tokens of own groups, before the round's update."""

    median_gap: float
    """The median of |log-prob of the learner - log-prob of the sampler|, in nats."""
    sample_size: float
    """The effective sample size as a share of tokens, (sum w)^2 / (N sum w^2) with w = learner / sampler (Kish)."""


def measure(gaps: Tensor) -> Agreement | None:
    """Returns the agreement, given the learner's log-probs minus the sampler's [N]; None if there are none."""
    if not len(gaps):
        return None
    weights = gaps.double().exp()
    return Agreement(
        median_gap=round(gaps.abs().median().item(), 4),  # beyond that it is rounding, which differs by processor
        sample_size=(weights.sum().square() / (len(weights) * weights.square().sum())).item(),
    )


def warn_unless_same(found: Agreement, engine: RolloutEngine) -> None:
    """Logs a warning if sampler and learner differ too much to be the same policy."""
    if found.median_gap <= WARN_AT * BOUND:
        return
    other = "model.dtype=float32" if engine is RolloutEngine.transformers else "rollout.engine=transformers"
    logger.warning(
        "sampler and learner disagree: half of the sampled tokens differ by more than %.3f nats, where %s is within "
        "%.3f (effective sample size %.2f). The round was learned from anyway; if it happens again, give "
        "%s, and please report it",
        found.median_gap,
        engine.value,
        BOUND,
        found.sample_size,
        other,
    )
