"""Forward and backward passes of the policy: from sequences to gradients or log-probs, in micro-batches that fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from codezero.config import LossType, TrainConfig
from codezero.errors import TrainingError
from codezero.llm.device import free_cached_memory, is_out_of_memory
from codezero.llm.logprobs import CompletionScorer, causal_lm
from codezero.llm.recompute import recompute_products
from codezero.ports import Progress
from codezero.train.batch import PromptBatches, TrainSequence, batch_limits, collate, collate_prompts, plan
from codezero.train.loss import LossShare, StepConstants, policy_loss
from codezero.train.trust_region import RatioBounds, fixed_bounds, second_moment_bounds

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The measurements of an optimizer step before its weights change; sums are over its trained tokens."""

    loss: float
    clipped_tokens: float
    kl_sum: float
    num_tokens: int
    sampler_gaps: Tensor
    """`LossShare.sampler_gaps` of all micro-batches, [N], on the CPU."""


class PolicyPasses:
    """The passes of the policy, and of its reference if there is one, over sequences of any number of prompts.

    The model stays in eval mode also for gradients: dropout would make the ratio to the sampling policy random.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        *,
        temperature: float,
        max_completion_length: int,
        reference_model: nn.Module | None,
        progress: Progress,
    ) -> None:
        """reference_model: None means that the base under `model`'s adapters is the reference, if config.beta > 0."""
        self._model = model
        self._config = config
        self._temperature = temperature
        self._max_completion_length = max_completion_length
        self._reference_model = reference_model
        self._progress = progress
        self._device = next(model.parameters()).device
        self._limits = batch_limits(config, self._device.type)
        if config.gradient_checkpointing:
            causal_lm(model).gradient_checkpointing_enable({"use_reentrant": False})
        else:
            recompute_products(model)

    def add_gradients(self, sequences: Sequence[TrainSequence], done: int, total: int) -> StepResult:
        """Adds the gradient of one optimizer step on `sequences` to the parameters, whose gradients must be empty.

        Sequences without a gradient count in the means but are not run (`_with_gradient`). Stops at the first loss that
        is not finite and returns it; the gradients are then useless. Reports progress in sequences, from `done` on.
        Raises TrainingError: the accelerator's memory does not hold a single sequence.
        """
        teaching = self._with_gradient(sequences)
        step = StepConstants(
            num_sequences=len(sequences),
            num_tokens=sum(len(s.completion_ids) for s in sequences),
            max_completion_length=self._max_completion_length,
            bounds=self._ratio_bounds(sequences),
        )

        def work(prompts: Sequence[PromptBatches]) -> StepResult:
            loss = clipped = kl = 0.0
            gaps: list[Tensor] = []
            finished = done + len(sequences) - len(teaching)
            for members, share in self._shares(prompts, step):
                loss += share.loss.item()
                if not math.isfinite(loss):
                    break
                share.loss.backward()  # type: ignore[no-untyped-call]
                clipped += share.clipped_tokens.item()
                kl += share.kl_sum.item()
                gaps.append(share.sampler_gaps.cpu())
                finished += members
                self._progress("learn", finished, total)
            return StepResult(
                loss=loss,
                clipped_tokens=clipped,
                kl_sum=kl,
                num_tokens=step.num_tokens,
                sampler_gaps=torch.cat(gaps) if gaps else torch.empty(0),
            )

        with self._recomputing_layers():
            return self._within_memory(teaching, work)

    def with_old_logprobs(self, sequences: Sequence[TrainSequence]) -> list[TrainSequence]:
        """Returns the sequences in order; those with a gradient (`_with_gradient`) and without old log-probs get the
        current policy's as such.

        Raises TrainingError: the accelerator's memory does not hold a single sequence.
        """
        old = self.present_logprobs([s for s in self._with_gradient(sequences) if s.old_logprobs is None])
        return [replace(s, old_logprobs=old[s]) if s in old else s for s in sequences]

    def _ratio_bounds(self, sequences: Sequence[TrainSequence]) -> RatioBounds:
        """Returns the bounds of an optimizer step. Those of M2PO take a pass over the sequences whose ratios may differ
        from 1, before any gradient, so that they do not depend on the micro-batches."""
        if self._config.loss_type is not LossType.m2po:
            return fixed_bounds(self._config)
        moved = [s for s in sequences if s.advantage and s.old_logprobs is not None]
        present = self.present_logprobs(moved)
        log_ratios = [new - old for s in moved for new, old in zip(present[s], s.old_logprobs or (), strict=True)]
        advantages = [s.advantage for s in moved for _ in s.completion_ids]
        return second_moment_bounds(torch.tensor(log_ratios), torch.tensor(advantages), self._config.m2_threshold)

    def present_logprobs(self, sequences: Sequence[TrainSequence]) -> dict[TrainSequence, tuple[float, ...]]:
        """Returns the log-probs [C] of each sequence's completion under the current policy.

        Raises TrainingError: the accelerator's memory does not hold a single sequence.
        """

        @torch.no_grad()
        def work(prompts: Sequence[PromptBatches]) -> dict[TrainSequence, tuple[float, ...]]:
            found: dict[TrainSequence, tuple[float, ...]] = {}
            for prompt in prompts:
                rows = self._all_logprobs(self._model, prompt)
                for members, logprobs in zip(prompt.micro_batches, rows, strict=True):
                    for sequence, row in zip(members, logprobs.tolist(), strict=True):
                        found[sequence] = tuple(row[: len(sequence.completion_ids)])
            return found

        return self._within_memory(sequences, work)

    def _with_gradient(self, sequences: Sequence[TrainSequence]) -> Sequence[TrainSequence]:
        """Returns the sequences with a gradient: those with an advantage, or all with a KL penalty. If there are none,
        it returns all, so that the optimizer step has gradients of 0."""
        return [s for s in sequences if s.advantage or self._config.beta > 0] or sequences

    def _shares(self, prompts: Sequence[PromptBatches], step: StepConstants) -> Iterator[tuple[int, LossShare]]:
        """Yields (number of sequences, loss) of each micro-batch; the caller differentiates it before the next."""
        for prompt in prompts:
            references: Sequence[Tensor | None] = [None] * len(prompt.micro_batches)
            if self._config.beta > 0:
                with torch.no_grad(), self._reference() as reference:
                    references = self._all_logprobs(reference, prompt)
            scorer = self._scorer(self._model, prompt)
            for members, wanted in zip(prompt.micro_batches, references, strict=True):
                batch = collate(members, self._device)
                logprobs = scorer.logprobs(batch.completion_ids, batch.loss_mask, self._temperature)
                yield len(members), policy_loss(logprobs, batch, self._config, step, wanted)
            scorer.backward()

    def _all_logprobs(self, model: nn.Module, prompt: PromptBatches) -> list[Tensor]:
        """Returns the log-probs [B, C] of every micro-batch of a prompt."""
        scorer = self._scorer(model, prompt)
        batches = (collate(members, self._device) for members in prompt.micro_batches)
        return [scorer.logprobs(b.completion_ids, b.loss_mask, self._temperature) for b in batches]

    def _scorer(self, model: nn.Module, prompt: PromptBatches) -> CompletionScorer:
        if self._limits.across_prompts:
            (members,) = prompt.micro_batches
            prompts, lengths = collate_prompts(members, self._device)
            width = max(len(s.prompt_ids) + len(s.completion_ids) for s in members)
            return CompletionScorer(model, prompts, lengths=lengths, width=width)
        prompt_ids = torch.tensor(prompt.prompt_ids, device=self._device)
        # A layer that is recomputed in the backward pass cannot write a cache.
        return CompletionScorer(model, prompt_ids, share_prompt=not self._config.gradient_checkpointing)

    @contextmanager
    def _reference(self) -> Iterator[nn.Module]:
        if self._reference_model is not None:
            yield self._reference_model
        else:
            model: Any = self._model
            with model.disable_adapter():
                yield model

    def _within_memory(self, sequences: Sequence[TrainSequence], work: Callable[[Sequence[PromptBatches]], T]) -> T:
        """Returns the result of the work on planned micro-batches. If the accelerator runs out of memory, it starts
        again with half as many sequences in each, and keeps that size. Raises TrainingError: one does not fit."""
        while True:
            prompts = plan(sequences, self._limits)
            try:
                return work(prompts)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                largest = max(len(members) for prompt in prompts for members in prompt.micro_batches)
            # Outside the handler, since the exception refers to the failed pass's tensors.
            self._model.zero_grad(set_to_none=True)
            free_cached_memory()
            if largest == 1:
                raise TrainingError(
                    "the accelerator's memory does not hold one sequence: set train.gradient_checkpointing=true, "
                    "train.method=lora, or a smaller rollout.max_new_tokens or model.name"
                )
            self._limits = replace(self._limits, max_sequences=largest // 2)

    @contextmanager
    def _recomputing_layers(self) -> Iterator[None]:
        """Sets layers to training mode, in which alone they recompute their activations, and back at the end, so that
        sampling can use a cache. Their children stay in eval mode, without dropout."""
        layers = [module for module in self._model.modules() if isinstance(module, GradientCheckpointingLayer)]
        for layer in layers:
            layer.training = self._config.gradient_checkpointing
        try:
            yield
        finally:
            for layer in layers:
                layer.training = False
