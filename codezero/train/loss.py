"""The policy losses as sums: those of micro-batches of any size add up to the loss of one optimizer step.

Names and results but m2po's are those of TRL's `GRPOTrainer`; `tests/unit/train/test_parity.py` checks them.

- grpo: mean over sequences of the mean over their tokens (DeepSeekMath, arXiv 2402.03300, eq. 3)
- dr_grpo: token sum over sequences x longest completion (Dr. GRPO, arXiv 2503.20783, section 3.2)
- dapo, bnpo: mean over all tokens of the step (DAPO, arXiv 2503.14476, section 3.3); TRL's bnpo takes that mean within
  each micro-batch, which is the same if a step is one micro-batch
- cispo: mean over all tokens of the clipped, detached ratio times the log-probability (MiniMax-M1, arXiv 2506.13585)
- m2po: mean over all tokens of the step, with bounds that follow from the ratios of all of them (`trust_region`)

If the sampler computes with other arithmetic than the learner, tokens are weighted by old policy / sampler, capped
(truncated importance sampling, https://fengyao.notion.site/off-policy-rl; TRL's vllm_importance_sampling_correction).
So are those of peers whose log-probs are used (`claims`); these weights are made before the first step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from codezero.config import Importance, LossType, TrainConfig
from codezero.train.batch import TrainBatch
from codezero.train.trust_region import HIGHEST, RatioBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConstants:
    """The constants that the losses of an optimizer step's micro-batches share: the denominators of means over all of
    them, and the bounds of the ratio."""

    num_sequences: int
    num_tokens: int
    max_completion_length: int
    """The longest completion allowed, in tokens; used by dr_grpo only."""
    bounds: RatioBounds
    """Not used by cispo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossShare:
    """One micro-batch's part of an optimizer step's loss. The sums are over its trained tokens."""

    loss: Tensor
    """The loss, [], with a gradient."""
    clipped_tokens: Tensor
    """The number of tokens whose ratio was clipped, []."""
    kl_sum: Tensor
    """The sum of the KL estimate over tokens, []; 0 without a reference."""
    sampler_gaps: Tensor
    """The log-probs of the policy before the step minus the sampler's, for trained tokens with known ones, [N]."""


def policy_loss(
    logprobs: Tensor, batch: TrainBatch, config: TrainConfig, step: StepConstants, reference: Tensor | None
) -> LossShare:
    """Returns the loss of a micro-batch, given the policy's logprobs [B, C].

    For tokens whose old log-probs are NaN the ratio is exactly 1. `reference` [B, C] has the starting weights'
    log-probs, None only if config.beta is 0.
    """
    mask = batch.loss_mask
    old = torch.where(torch.isnan(batch.old_logprobs), logprobs.detach(), batch.old_logprobs)
    ratio = (logprobs - old).exp()
    per_sequence = batch.advantages[:, None]
    if config.loss_type is LossType.cispo:
        # The upper bound is for the ratio itself, not for its distance from 1, and there is no lower bound.
        losses = -ratio.clamp(max=config.epsilon_max).detach() * per_sequence * logprobs
        clipped = (ratio > config.epsilon_max) & (per_sequence > 0)
    else:
        low, high = step.bounds.low, step.bounds.high
        # The minimum of r A and clipped r A, with dual clip (arXiv 1912.09729, TRL's delta): the minimum alone has no
        # bound where the advantage is negative, so that a rollout server that claims tiny old log-probs would have its
        # tokens make up the whole update.
        bounded = torch.where(per_sequence < 0, ratio.clamp(low, config.importance_cap), ratio.clamp(max=high))
        losses = -bounded * per_sequence
        is_out = (ratio < low) | (ratio > config.importance_cap)
        clipped = (is_out & (per_sequence < 0)) | ((ratio > high) & (per_sequence > 0))
    gaps = (old.detach() - batch.sampler_logprobs) * mask  # NaN if the sampler's are unknown
    losses = losses * _importance(gaps.nan_to_num(0.0), config) * batch.weights
    kl = logprobs.new_zeros(())
    if reference is not None:
        # The estimator k3 of http://joschu.net/blog/kl-approx.html, never negative. Multiplied by the ratio, which may
        # be 1 but has a gradient, its gradient is that of the reverse KL itself (DeepSeek-V3.2, arXiv 2512.02556).
        log_ratio = reference - logprobs
        per_token_kl = (log_ratio.exp() - log_ratio - 1) * ratio.clamp(max=HIGHEST) * mask
        losses = losses + config.beta * per_token_kl
        kl = per_token_kl.detach().sum()
    return LossShare(
        loss=_average(losses * mask, mask, config.loss_type, step),
        clipped_tokens=(clipped & mask).sum(),
        kl_sum=kl,
        sampler_gaps=gaps[mask & ~gaps.isnan()],
    )


def _importance(gaps: Tensor, config: TrainConfig) -> Tensor:
    """Returns the weights of token losses, [B, C], [B, 1] or [], given log-probs of old policy minus sampler [B, C]."""
    if config.importance is Importance.none:
        return gaps.new_ones(())
    if config.importance is Importance.sequence:
        gaps = gaps.sum(-1, keepdim=True)
    return gaps.exp().clamp(max=config.importance_cap)


def _average(losses: Tensor, mask: Tensor, loss_type: LossType, step: StepConstants) -> Tensor:
    if loss_type is LossType.grpo:
        means = losses.sum(-1) / mask.sum(-1).clamp(min=1)  # [B]
        return means.sum() / step.num_sequences
    if loss_type is LossType.dr_grpo:
        return losses.sum() / (step.num_sequences * step.max_completion_length)
    return losses.sum() / step.num_tokens
