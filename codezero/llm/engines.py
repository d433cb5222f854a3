"""Makes the rollout engines that sample on this machine."""

from __future__ import annotations

from pathlib import Path

import torch

from codezero.config import RolloutEngine
from codezero.errors import RolloutError
from codezero.llm.llama_engine import LlamaCppEngine
from codezero.llm.llama_library import PACKAGE
from codezero.llm.sample import SampleGroups, sample_groups
from codezero.llm.vllm_engine import VllmEngine
from codezero.llm.within_memory import WithinMemory
from codezero.runtime.system_info import is_installed

_NEEDS = {
    RolloutEngine.llama_cpp: ("cpu", "a CPU", PACKAGE, "llama-cpp (docs/launch-script.md) on a machine without a GPU"),
    RolloutEngine.vllm: ("cuda", "an NVIDIA GPU", "vllm", "vllm (docs/rollout-service.md) on a machine with one"),
}
"""The type of the device that an engine samples on, its name, and the engine's package and extra."""


def require(engine: RolloutEngine, device: torch.device) -> None:
    """Raises RolloutError: the engine's package is not installed, or it does not sample on this device."""
    if engine not in _NEEDS:
        return
    device_type, name, package, extra = _NEEDS[engine]
    is_there = is_installed(package)
    if device.type != device_type or not is_there:
        where = f"this machine computes on {device.type}" if is_there else f"{package} is not installed"
        raise RolloutError(
            f"rollout.engine={engine.value} samples on {name}, by a package of its own, and {where}: install the extra "
            f"{extra}, or set rollout.engine=transformers"
        )


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
