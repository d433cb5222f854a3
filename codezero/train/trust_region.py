"""The bounds of the probability ratio in an optimizer step: fixed ones, or those of M2PO.

M2PO (second-moment trust policy optimisation, arXiv 2510.01161) bounds the mean of (log r)² instead of each ratio r of
present to sampling policy, so that data of much earlier policies is clipped far less. The mean is over the tokens that
a trust region concerns: those whose r has already moved the way that their advantage A pushes it. If it exceeds tau,
the tokens with the largest (log r)² are left out until that of the rest does not. The gradient of clipping at
[e^-t, e^t], where t parts the kept tokens from the others, is the gradient of the paper's J = 1/N Σ M r A with M in
{0, 1}, since tokens that a trust region does not concern are never clipped. This, and the outer bounds, is AstraFlow's
form. The paper's own code differs from both: at its t the second moment of |log r|, capped at t, is tau, and its bounds
are at most 0.7 and at least 1.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from codezero.config import TrainConfig

LOWEST, HIGHEST = 0.05, 21.0
"""The outer bounds of M2PO, AstraFlow's: a single token beyond them could outweigh all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioBounds:
    """The ratios beyond which a token has no gradient: below `low` with A < 0, above `high` with A > 0."""

    low: float
    high: float


def fixed_bounds(config: TrainConfig) -> RatioBounds:
    """Returns the configured bounds of PPO's clipping (arXiv 1707.06347)."""
    return RatioBounds(low=1 - config.epsilon, high=1 + config.epsilon_high)


def second_moment_bounds(log_ratios: Tensor, advantages: Tensor, tau: float) -> RatioBounds:
    """Returns the bounds of M2PO, given log r and A of tokens of an optimizer step, both [N].

    Tokens whose r is 1 need not be among them. Like AstraFlow's, the bounds keep at least one of the tokens concerned.
    t lies halfway between the last kept and the first left out, so that rounding moves no token across it.
    """
    concerned = log_ratios[log_ratios * advantages > 0]
    sizes = concerned.abs().double().sort().values
    means = sizes.square().cumsum(0) / torch.arange(1, len(sizes) + 1)  # never fall
    num_kept = max(1, int((means <= tau).sum()))
    if num_kept >= len(sizes):
        return RatioBounds(low=LOWEST, high=HIGHEST)
    t = min((sizes[num_kept - 1] + sizes[num_kept]).item() / 2, math.log(HIGHEST))
    return RatioBounds(low=max(math.exp(-t), LOWEST), high=math.exp(t))
