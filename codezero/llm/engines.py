"""Makes the rollout engines that sample on this machine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from codezero.config import RolloutEngine
from codezero.errors import RolloutError
from codezero.llm import continuous
from codezero.llm.llama_engine import LlamaCppEngine, require_llama_cpp
from codezero.llm.sample import SampleGroups, SampleRequest, sample_groups
from codezero.llm.vllm_engine import VllmEngine, require_vllm
from codezero.llm.within_memory import WithinMemory
from codezero.types import SampledTokens

logger = logging.getLogger(__name__)


def require(engine: RolloutEngine, device: torch.device) -> None:
    """Raises RolloutError: the engine's package is not installed, or it does not sample on this device."""
    if engine is RolloutEngine.llama_cpp:
        require_llama_cpp(device)
    elif engine is RolloutEngine.vllm:
        require_vllm(device)


def make_engine(
    wanted: RolloutEngine, engine: RolloutEngine, model_folder: Path, folder: Path, cache_bytes: int
) -> SampleGroups:
    """Returns the engine, which is another than `wanted` if that is auto, within the accelerator's memory; one that
    asks servers on other machines has transformers for what they leave.

    model_folder: the model's files; folder: what the engine writes; cache_bytes: the size of its key-value cache.
    """
    sample: SampleGroups = sample_groups
    if engine is RolloutEngine.llama_cpp:
        sample = LlamaCppEngine(model_folder, folder, cache_bytes=cache_bytes).sample_groups
    elif engine is RolloutEngine.vllm:
        sample = VllmEngine(model_folder, folder, cache_bytes=cache_bytes).sample_groups
    elif engine is RolloutEngine.continuous:
        sample = ContinuousOrNot() if wanted is RolloutEngine.auto else continuous.sample_groups
    return WithinMemory(sample)


class ContinuousOrNot:
    """A rollout engine that samples by continuous batching until that fails, and then without."""

    def __init__(self) -> None:
        self._has_failed = False

    def __call__(self, model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
        if not self._has_failed:
            try:
                return continuous.sample_groups(model, request)
            except RolloutError as fault:
                self._has_failed = True
                logger.warning(
                    "%s. Nothing has to be done: until the next start transformers samples without it, which takes "
                    "longer",
                    fault,
                )
        return sample_groups(model, request)
