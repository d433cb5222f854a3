"""Samples with any rollout engine as many attempts at a time as the accelerator's memory holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch

from codezero.errors import RolloutError
from codezero.llm.device import free_cached_memory, is_out_of_memory
from codezero.llm.sample import SampleGroups, SamplingParams, StepCallback
from codezero.types import SampledTokens

logger = logging.getLogger(__name__)


class WithinMemory:
    """A rollout engine (`SampleGroups`) around another one. If the accelerator runs out of memory, it samples half as
    many attempts at a time, and keeps to that."""

    def __init__(self, sample: SampleGroups) -> None:
        self._sample = sample
        self._most_rows = 2**31
        """The most attempts sampled at a time: all, until an accelerator has run out of memory."""

    def __call__(
        self,
        model: Any,
        prompts: Sequence[Sequence[int]],
        num_generations: int,
        params: SamplingParams,
        *,
        end_ids: Sequence[int],
        pad_id: int,
        generator: torch.Generator | None = None,
        on_step: StepCallback | None = None,
    ) -> list[list[SampledTokens]]:
        """Returns so many attempts at each prompt. Raises RolloutError: memory does not hold a single one."""

        def sampled(
            prompts: Sequence[Sequence[int]], num: int, on_step: StepCallback | None
        ) -> list[list[SampledTokens]]:
            rows = len(prompts) * num
            first, second = _half_of(on_step, 0), _half_of(on_step, 1)
            if rows > self._most_rows and len(prompts) > 1:
                half = len(prompts) // 2
                return sampled(prompts[:half], num, first) + sampled(prompts[half:], num, second)
            if rows > self._most_rows:
                (one,), (other,) = sampled(prompts, num // 2, first), sampled(prompts, num - num // 2, second)
                return [one + other]
            try:
                return self._sample(
                    model, prompts, num, params, end_ids=end_ids, pad_id=pad_id, generator=generator, on_step=on_step
                )
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                if rows == 1:
                    raise RolloutError(
                        "the accelerator's memory does not hold the sampling of one attempt: set a smaller "
                        "rollout.max_new_tokens or model.name"
                    ) from error
            # Outside the handler, since the exception refers to the failed batch's tensors.
            free_cached_memory()
            self._most_rows = rows // 2
            logger.info("out of memory with %d attempts at a time: from now on it is %d", rows, self._most_rows)
            return sampled(prompts, num, on_step)

        return sampled(prompts, num_generations, on_step)


def _half_of(on_step: StepCallback | None, number: int) -> StepCallback | None:
    """Returns the callback of the first (0) or second (1) half of the work."""
    return None if on_step is None else lambda done, total: on_step((number * total + done) // 2, total)
