"""The policy losses in sum form: the shares of micro-batches of any size add up to the loss of one optimizer step.

Names and results follow TRL's `GRPOTrainer`; `tests/unit/train/test_parity.py` holds them to it.

- grpo: mean over sequences of the mean over their tokens (DeepSeekMath, arXiv 2402.03300, eq. 3)
- dr_grpo: token sum over sequences x longest completion (Dr. GRPO, arXiv 2503.20783, section 3.2)
- dapo, bnpo: mean over all tokens of the step (DAPO, arXiv 2503.14476, section 3.3); TRL's bnpo takes that mean within
  each micro-batch, which is the same where a step is one micro-batch
- cispo: mean over all tokens of the clipped, detached ratio times the log-probability (MiniMax-M1, arXiv 2506.13585)

Where something else than the learner's own arithmetic sampled, tokens are weighed by old policy / sampler, capped
(truncated importance sampling, https://fengyao.notion.site/off-policy-rl; TRL's vllm_importance_sampling_correction).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from codezero.config import Importance, LossType, TrainConfig
from codezero.train.batch import TrainBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSize:
    """What an optimizer step averages over: all its micro-batches together."""

    num_sequences: int
    num_tokens: int
    max_completion_length: int
    """In tokens; only dr_grpo divides by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossShare:
    """One micro-batch's part of an optimizer step's loss. The sums are over its trained tokens."""

    loss: Tensor
    """[] with gradient."""
    clipped_tokens: Tensor
    """[]: tokens whose ratio was clipped."""
    kl_sum: Tensor
    """[]: sum of the KL estimate over tokens; 0 without reference."""
    sampler_gaps: Tensor
    """[N]: log-prob of the policy before the step minus that of the sampler, of trained tokens whose sampler told."""


def policy_loss(
    logprobs: Tensor, batch: TrainBatch, config: TrainConfig, size: StepSize, reference: Tensor | None = None
) -> LossShare:
    """Loss of a micro-batch from the policy's logprobs [B, C].

    Where the batch's old log-probs are NaN, the ratio is exactly 1. `reference` [B, C] holds the starting weights'
    log-probs, needed when config.beta > 0.
    """
    mask = batch.loss_mask
    old = torch.where(torch.isnan(batch.old_logprobs), logprobs.detach(), batch.old_logprobs)
    ratio = (logprobs - old).exp()
    per_sequence = batch.advantages[:, None]
    if config.loss_type is LossType.cispo:
        # The ceiling is the ratio itself, not its distance from 1, and there is no floor.
        losses = -ratio.clamp(max=config.epsilon_high).detach() * per_sequence * logprobs
        clipped = (ratio > config.epsilon_high) & (per_sequence > 0)
    else:
        low, high = 1 - config.epsilon, 1 + config.epsilon_high
        losses = -torch.min(ratio * per_sequence, ratio.clamp(low, high) * per_sequence)
        clipped = ((ratio < low) & (per_sequence < 0)) | ((ratio > high) & (per_sequence > 0))
    gaps = (old.detach() - batch.sampler_logprobs) * mask  # NaN where the sampler has not told
    losses = losses * _importance(gaps.nan_to_num(0.0), config)
    kl = logprobs.new_zeros(())
    if reference is not None:
        # k3 of http://joschu.net/blog/kl-approx.html, never negative. Times the ratio, whose value may be 1 but whose
        # gradient is not 0, its gradient is that of the reverse KL itself (DeepSeek-V3.2, arXiv 2512.02556).
        log_ratio = reference - logprobs
        per_token_kl = (log_ratio.exp() - log_ratio - 1) * ratio * mask
        losses = losses + config.beta * per_token_kl
        kl = per_token_kl.detach().sum()
    return LossShare(
        loss=_average(losses * mask, mask, config.loss_type, size),
        clipped_tokens=(clipped & mask).sum(),
        kl_sum=kl,
        sampler_gaps=gaps[mask & ~gaps.isnan()],
    )


def _importance(gaps: Tensor, config: TrainConfig) -> Tensor:
    """What token losses are multiplied by, [B, C] or [B, 1], from log-probs of old policy minus sampler [B, C]."""
    if config.importance is Importance.none:
        return gaps.new_ones(())
    if config.importance is Importance.sequence:
        gaps = gaps.sum(-1, keepdim=True)
    return gaps.exp().clamp(max=config.importance_cap)


def _average(losses: Tensor, mask: Tensor, loss_type: LossType, size: StepSize) -> Tensor:
    if loss_type is LossType.grpo:
        means = losses.sum(-1) / mask.sum(-1).clamp(min=1)  # [B]
        return means.sum() / size.num_sequences
    if loss_type is LossType.dr_grpo:
        return losses.sum() / (size.num_sequences * size.max_completion_length)
    return losses.sum() / size.num_tokens
