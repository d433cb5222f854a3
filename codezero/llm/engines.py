"""Makes the rollout engines that sample on this machine."""

from __future__ import annotations

from pathlib import Path

import torch

from codezero.config import RolloutEngine
from codezero.llm.llama_engine import LlamaCppEngine, require_llama_cpp
from codezero.llm.sample import SampleGroups, sample_groups
from codezero.llm.vllm_engine import VllmEngine, require_vllm
from codezero.llm.within_memory import WithinMemory


def require(engine: RolloutEngine, device: torch.device) -> None:
    """Raises RolloutError: the engine's package is not installed, or it does not sample on this device."""
    if engine is RolloutEngine.llama_cpp:
        require_llama_cpp(device)
    elif engine is RolloutEngine.vllm:
        require_vllm(device)


def make_engine(engine: RolloutEngine, model_folder: Path, folder: Path, cache_bytes: int) -> SampleGroups:
    """Returns the engine, within the accelerator's memory.

    model_folder: the model's files; folder: what the engine writes; cache_bytes: the size of its key-value cache.
    """
    sample: SampleGroups = sample_groups
    if engine is RolloutEngine.llama_cpp:
        sample = LlamaCppEngine(model_folder, folder, cache_bytes=cache_bytes).sample_groups
    elif engine is RolloutEngine.vllm:
        sample = VllmEngine(model_folder, folder, cache_bytes=cache_bytes).sample_groups
    return WithinMemory(sample)
