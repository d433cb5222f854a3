"""Samples with any rollout engine as many attempts at a time as the accelerator's memory holds."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from codezero.errors import RolloutError
from codezero.llm.device import free_cached_memory, is_out_of_memory
from codezero.llm.sample import SampleGroups, SampleRequest, StepCallback
from codezero.types import SampledTokens

logger = logging.getLogger(__name__)


class WithinMemory:
    """A rollout engine (`SampleGroups`) around another one. If the accelerator runs out of memory, it samples half as
    many attempts at a time, and keeps to that."""

    def __init__(self, sample: SampleGroups) -> None:
        self._sample = sample
        self._most_rows = 2**31
        """The most attempts sampled at a time: all, until an accelerator has run out of memory."""

    def __call__(self, model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
        """Returns the attempts at each prompt. Raises RolloutError: memory does not hold a single one."""
        rows = len(request.prompts) * request.num_generations
        if rows > self._most_rows:
            first, second = (self(model, half) for half in _halves(request))
            return first + second if len(request.prompts) > 1 else [first[0] + second[0]]
        try:
            return self._sample(model, request)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if rows == 1:
                raise RolloutError(
                    "the accelerator's memory does not hold the sampling of one attempt: set a smaller max_new_tokens "
                    "(of rollout, proposer or verifier), or a smaller model"
                ) from error
        # Outside the handler, since the exception refers to the failed batch's tensors.
        free_cached_memory()
        self._most_rows = rows // 2
        logger.info("out of memory with %d attempts at a time: from now on it is %d", rows, self._most_rows)
        return self(model, request)


def _halves(request: SampleRequest) -> tuple[SampleRequest, SampleRequest]:
    """Returns the requests for half of the prompts each, or for half of the attempts at a single one."""
    first, second = (replace(request, on_step=_half_of(request.on_step, number)) for number in range(2))
    if half := len(request.prompts) // 2:
        return replace(first, prompts=request.prompts[:half]), replace(second, prompts=request.prompts[half:])
    half = request.num_generations // 2
    return replace(first, num_generations=half), replace(second, num_generations=request.num_generations - half)


def _half_of(on_step: StepCallback | None, number: int) -> StepCallback | None:
    """Returns the callback of the first (0) or second (1) half of the work."""
    return None if on_step is None else lambda done, total: on_step((number * total + done) // 2, total)
