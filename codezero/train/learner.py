"""The learner: one GRPO update of the policy per round, from groups of any size and origin.

    groups ─► advantages ─► sequences ─► optimizer steps ─► prompts ─► micro-batches
              equal rewards              minibatch_size     shared     micro_batch_size
              left out                                      pass

Gradients of micro-batches add up to the gradient of their optimizer step, whatever the split.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from codezero.config import Importance, LossType, RolloutEngine, TrainConfig
from codezero.errors import TrainingError
from codezero.llm.device import is_out_of_memory
from codezero.llm.logprobs import require_plain_head
from codezero.ports import Progress
from codezero.reports import SkipReason, UpdateReport
from codezero.train import agreement
from codezero.train.advantage import group_advantages
from codezero.train.batch import TextEncoder, TrainSequence, to_sequences
from codezero.train.claims import log_ratios
from codezero.train.downsample import most_varied
from codezero.train.optimizer import MasterAdamW
from codezero.train.passes import PolicyPasses, StepResult
from codezero.types import RolloutGroup, ScoredGroup

logger = logging.getLogger(__name__)

COMPUTES_OTHERWISE = (RolloutEngine.llama_cpp, RolloutEngine.vllm, RolloutEngine.remote)
"""The engines whose log-probs are not those of the learner's own arithmetic."""


class GrpoLearner:
    """The implementation of `ports.Learner`. It trains `model` in place."""

    policy_version: int

    def __init__(
        self,
        model: nn.Module,
        encoder: TextEncoder | None,
        config: TrainConfig,
        *,
        temperature: float,
        max_completion_length: int,
        reference_model: nn.Module | None = None,
        engine: RolloutEngine = RolloutEngine.transformers,
        progress: Progress = lambda stage, done, total: None,
        before_update: Callable[[], None] = lambda: None,
    ) -> None:
        """Trains the parameters of `model` that require gradients: all of them, or the adapters of a peft model.

        encoder: the encoder of peers' texts; None if there are none. temperature: the sampling temperature, which
        divides the logits here too. max_completion_length: the longest completion, in tokens. reference_model: a
        frozen copy of the weights before any training (not of those that a resumed node starts with); needed if
        config.beta > 0 unless `model` is a peft model, whose frozen base is the reference. engine: the sampler of own
        rollouts, which train.importance weighs with those in COMPUTES_OTHERWISE only. before_update: called before
        each change of weights and moments.

        Raises ModelError: the model's logits are not its head's output.
        """
        model.eval()
        require_plain_head(model)
        self._importance_of_peers = config.importance
        if engine not in COMPUTES_OTHERWISE:
            config = replace(config, importance=Importance.none)
        self._encoder, self._engine = encoder, engine
        self._config = config
        self._before_update = before_update
        self._names = [name for name, weight in model.named_parameters() if weight.requires_grad]
        self._passes = PolicyPasses(
            model,
            config,
            temperature=temperature,
            max_completion_length=max_completion_length,
            reference_model=reference_model,
            progress=progress,
        )
        rate = config.lora_learning_rate if hasattr(model, "disable_adapter") else config.learning_rate
        self._optimizer = MasterAdamW(model.parameters(), rate, config.weight_decay, config.moments, config.masters)
        self.policy_version = 0

    def step(self, groups: Sequence[ScoredGroup]) -> UpdateReport:
        """Makes one policy update on all scored groups whose rewards differ. The version grows by one if weights
        changed.

        Masked attempts count neither in advantages nor in the loss and its denominators. A reward, loss or gradient
        that is not finite stops the update and leaves the weights as they are after the optimizer steps before it.

        Raises TrainingError: the accelerator's memory does not hold a single sequence.
        """
        scored = [most_varied(group, self._config.max_trained) for group in groups if group.scored]
        rewards = [[reward.total for reward in group.earned] for group in scored]
        for group, values in zip(scored, rewards, strict=True):
            if not all(map(math.isfinite, values)):
                where = f"rewards {values} of {group.group.peer_id} on task {group.group.task.task_id}"
                return self._skip(SkipReason.NOT_FINITE, where)
        advantages = group_advantages(rewards, self._config.scale_rewards, self._config.min_advantage)
        useful = [
            (group, [group.weight * value for value in values])
            for group, values in zip(scored, advantages, strict=True)
            if group.has_advantage
        ]
        num_zero = len(scored) - len(useful)
        if not useful:
            reason = SkipReason.ZERO_ADVANTAGE if scored else SkipReason.NO_GROUPS
            return self._skip(reason, f"{len(scored)} of {len(groups)} groups scored", num_zero)
        sequences = [
            sequence
            for group, values in useful
            for sequence in to_sequences(_counting(group), values, self._encoder, self.policy_version)
        ]
        if not sequences:
            return self._skip(SkipReason.NO_GROUPS, "no completion has a token", num_zero)
        sequences, num_weighted = self._weighted(sequences)
        update = self._update(sequences, num_zero)
        return replace(update, num_weighted=num_weighted if update.skipped is None else 0)

    def weights(self) -> dict[str, torch.Tensor]:
        """Returns the trained weights by name, in float32 unless bfloat16 ones have no masters; updates change them in
        place. Saved weights are restored by copying into these and then calling `load_state_dict`."""
        return dict(zip(self._names, self._optimizer.masters, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Returns the optimizer's state and the policy version, to be saved beside `weights`."""
        return {"policy_version": self.policy_version, "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a `state_dict`, after the weights saved with it have been copied into `weights`."""
        self.policy_version = state["policy_version"]
        self._optimizer.load_state_dict(state["optimizer"])

    def _weighted(self, sequences: list[TrainSequence]) -> tuple[list[TrainSequence], int]:
        """Returns the sequences, those of peers with what they plausibly claim, and the number of these. Takes a pass
        over the sequences with claims, without gradients."""
        if self._config.loss_type is not LossType.m2po and self._importance_of_peers is Importance.none:
            return sequences, 0
        claimed = [s for s in sequences if s.claimed_logprobs is not None and s.advantage]
        own = self._passes.present_logprobs(claimed)
        weighted = {s: self._with_claim(s, own[s]) for s in claimed}
        found = [weighted.get(s) or s for s in sequences]
        return found, sum(new is not old for new, old in zip(found, sequences, strict=True))

    def _with_claim(self, sequence: TrainSequence, own: Sequence[float]) -> TrainSequence | None:
        """Returns the sequence with its claim as weights or, for m2po, as old log-probs, so that no token's ratio is
        above the cap; None if the claim is not plausible beside the own log-probs [C]."""
        ratios = log_ratios(sequence.claimed_logprobs or (), own)
        if ratios is None:
            return None
        if self._importance_of_peers is Importance.sequence and self._config.loss_type is not LossType.m2po:
            ratios = (math.fsum(ratios),) * len(ratios)
        capped = [min(one, math.log(self._config.importance_cap)) for one in ratios]
        if self._config.loss_type is LossType.m2po:
            return replace(sequence, old_logprobs=tuple(mine - one for mine, one in zip(own, capped, strict=True)))
        return replace(sequence, weights=tuple(map(math.exp, capped)))

    def _update(self, sequences: Sequence[TrainSequence], num_zero: int) -> UpdateReport:
        size = self._config.minibatch_size or len(sequences)
        starts = [*range(0, len(sequences), size)] * self._config.num_iterations
        # In the first step the sampling policy of new rollouts is the current one and the ratio is 1 by definition. In
        # later ones, clipping needs the log-probs from before the first step.
        known = self._passes.with_old_logprobs(sequences) if len(starts) > 1 else sequences
        results: list[StepResult] = []
        grad_norm = math.nan
        done, total = 0, len(sequences) * self._config.num_iterations
        for start in starts:
            minibatch = (known if results else sequences)[start : start + size]
            self._optimizer.drop_gradients()  # some remain if an earlier call was interrupted
            result = self._passes.add_gradients(minibatch, done, total)
            done += len(minibatch)
            fault = "" if math.isfinite(result.loss) else f"loss is {result.loss}"
            if not fault:
                grad_norm = self._apply_gradients()
                fault = "" if math.isfinite(grad_norm) else f"gradient norm is {grad_norm}"
            if fault:
                self._optimizer.drop_gradients()
                self.policy_version += 1 if results else 0
                detail = f"{fault} in optimizer step {len(results) + 1} of {len(starts)}; the steps before it stay"
                return self._skip(SkipReason.NOT_FINITE, detail, num_zero)
            results.append(result)
        self.policy_version += 1
        return self._report(results, grad_norm, num_zero)

    def _apply_gradients(self) -> float:
        self._before_update()
        try:
            return self._optimizer.apply(self._config.max_grad_norm)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise TrainingError(
                "the accelerator's memory does not hold the optimizer's state: set train.method=lora"
            ) from error

    def _report(self, results: Sequence[StepResult], grad_norm: float, num_zero: int) -> UpdateReport:
        num_tokens = sum(result.num_tokens for result in results)  # of all passes
        found = agreement.measure(torch.cat([result.sampler_gaps for result in results]))
        if found is not None:
            agreement.warn_unless_same(found, self._engine)
        return UpdateReport(
            policy_version=self.policy_version,
            loss=sum(result.loss for result in results) / len(results),
            kl=sum(result.kl_sum for result in results) / num_tokens if self._config.beta > 0 else None,
            clip_fraction=sum(result.clipped_tokens for result in results) / num_tokens,
            grad_norm=grad_norm,
            num_zero_advantage=num_zero,
            sampler_gap=None if found is None else found.median_gap,
            sample_size=None if found is None else found.sample_size,
        )

    def _skip(self, reason: SkipReason, detail: str, num_zero: int = 0) -> UpdateReport:
        logger.info("no update: %s (%s)", reason.value, detail)
        return UpdateReport(policy_version=self.policy_version, skipped=reason, num_zero_advantage=num_zero)


def _counting(scored: ScoredGroup) -> RolloutGroup:
    """Returns the group without its masked attempts."""
    return replace(scored.group, rollouts=tuple(rollout for rollout, _, _ in scored.rewarded))
