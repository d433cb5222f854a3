"""A model that writes problems or test cases, alone in its process: its memory, its loading, its adapters' learner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from codezero.config import LossType, ModelConfig, RewardScale, RolloutEngine, TrainConfig, TrainMethod
from codezero.errors import ModelError
from codezero.llm import device as devices
from codezero.llm.load import LoadedModel, load_model
from codezero.ports import Progress
from codezero.runtime.amounts import shortage
from codezero.runtime.console import Console
from codezero.train import checkpoint, memory
from codezero.train.learner import GrpoLearner
from codezero.train.memory import MemoryEstimate, Workload
from codezero.train.method import apply_lora
from codezero.workers.pool import WORKER_BYTES

PROMPT_TOKENS = 1024
"""The longest prompt that memory is planned for."""


def train_config(learning_rate: float, lora_r: int) -> TrainConfig:
    """Returns the settings of the learner of adapters. Rewards are centred and not divided by their deviation: in a
    group of equal answers but one, a small difference would count like right against wrong."""
    return TrainConfig(
        method=TrainMethod.lora,
        loss_type=LossType.dr_grpo,
        scale_rewards=RewardScale.none,
        min_advantage=0.0,
        max_trained=0,
        lora_learning_rate=learning_rate,
        lora_r=lora_r,
        lora_alpha=2 * lora_r,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """The sizes of a batch that memory depends on, and what the model is for."""

    role: str
    """The node's role, for messages."""
    num_groups: int
    num_generations: int
    """The number of texts in each group."""
    max_new_tokens: int
    train: TrainConfig
    is_trained: bool
    beside: TrainConfig | None = None
    """The settings of further adapters that are trained on the same model in turn; None without any."""
    engine: RolloutEngine = RolloutEngine.transformers


def num_bytes(folder: Path, writing: Writing, dtype: torch.dtype, device: torch.device) -> int:
    """Returns the peak memory in bytes of a node that writes with the model in this folder."""
    plan = _estimate(folder, writing, writing.train, dtype, device)
    if not writing.is_trained:
        return plan.solve
    if writing.beside is None:
        return plan.peak
    other = _estimate(folder, writing, writing.beside, dtype, device)
    return max(plan.peak, other.peak) + other.optimizer + other.gradients  # adapters are as large as their gradients


def cache_bytes(folder: Path, writing: Writing, dtype: torch.dtype, device: torch.device) -> int:
    """Returns the most bytes of the key-value cache of the node's rollout engine: twice what is planned, as for a
    solver by llama.cpp, whose process ends at its limit."""
    return 2 * _estimate(folder, writing, writing.train, dtype, device).kv_cache


def _estimate(
    folder: Path, writing: Writing, train: TrainConfig, dtype: torch.dtype, device: torch.device
) -> MemoryEstimate:
    load = Workload(
        num_local=writing.num_groups,
        num_external=0,
        num_generations=writing.num_generations,
        prompt_tokens=PROMPT_TOKENS,
        completion_tokens=writing.max_new_tokens,
        dtype=dtype,
        device_type=device.type,
        evaluator_bytes=0,
        workers_bytes=0 if device.type == "cuda" else WORKER_BYTES,
        engine=writing.engine,
    )
    return memory.estimate(memory.read_shape(folder), TrainMethod.lora, train, load)


def load_writer(
    name: str,
    folder: Path,
    writing: Writing,
    dtype: torch.dtype,
    device: torch.device,
    memory_bytes: int,
    seed: int,
    do: str,
    console: Console,
) -> LoadedModel:
    """Loads the model, with adapters if it is trained, and says so. `do` is the remedy if `memory_bytes` are too few.

    Raises ModelError: the model does not fit into memory, or cannot be loaded.
    """
    needed = num_bytes(folder, writing, dtype, device)
    if needed > memory_bytes:
        raise ModelError(f"a {writing.role} with {name} needs {shortage(needed, memory_bytes, 'memory')}: {do}")
    loaded = load_model(name, folder, device, dtype)
    if writing.is_trained:
        loaded = replace(loaded, model=apply_lora(loaded.model, writing.train, seed))
    how = "LoRA" if writing.is_trained else "not trained"
    console.line(f"{writing.role}: {name}, {how}, on {devices.describe(device, dtype)}")
    return loaded


def prepare_device(config: ModelConfig) -> torch.device:
    """Returns the device to compute on, with its threads and memory set up. Raises ConfigError: it is not there."""
    device = devices.choose_device(config.device)
    devices.set_threads(config.threads)
    devices.return_freed_memory()
    return device


def make_learner(
    weights: LoadedModel,
    train: TrainConfig,
    *,
    max_new_tokens: int,
    temperature: float,
    progress: Progress,
    engine: RolloutEngine = RolloutEngine.transformers,
) -> GrpoLearner:
    """Returns the learner of the model's adapters, which trains on own texts only, as `engine` sampled them."""
    return GrpoLearner(
        weights.model,
        None,
        train,
        temperature=temperature,
        max_completion_length=max_new_tokens,
        engine=engine,
        progress=progress,
    )


def saved(learner: GrpoLearner) -> dict[str, Any]:
    """Returns what a checkpoint keeps of a learner."""
    return {"weights": learner.weights(), "engine": learner.state_dict()}


def restore(learner: GrpoLearner, kept: Mapping[str, Any]) -> None:
    """Restores what `saved` has returned. Raises CheckpointError: it is of another model or method."""
    checkpoint.restore_weights(learner.weights(), kept["weights"])
    learner.load_state_dict(kept["engine"])
