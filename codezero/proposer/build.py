"""Chooses and loads the proposer's model by the configuration: its name, backend, memory and precision."""

from __future__ import annotations

from dataclasses import replace

import torch

from codezero.config import NodeConfig, ProposerBackend, ProposerConfig, TrainConfig, TrainMethod
from codezero.errors import ModelError
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.runtime.console import Console
from codezero.train import memory
from codezero.train.memory import GIB, Workload
from codezero.train.method import apply_lora, free_room
from codezero.workers.pool import WORKER_BYTES

LARGE_PROPOSER = "Qwen/Qwen3-4B"
LARGE_PROPOSER_MEMORY_BYTES = 24 * GIB
"""The free accelerator memory from which proposer.model=auto is the large model, which needs about half of it."""
PROMPT_TOKENS = 1024
"""The longest prompt that memory is planned for."""


def choose_backend(config: ProposerConfig) -> ProposerBackend:
    """Returns the backend, resolving `auto`."""
    if config.backend is not ProposerBackend.auto:
        return config.backend
    return ProposerBackend.openai if config.url else ProposerBackend.transformers


def choose_model(config: NodeConfig, device: torch.device, memory_bytes: int) -> str:
    """Returns the model's name, resolving `auto` by the bytes of free memory."""
    if config.proposer.model != "auto":
        return config.proposer.model
    is_large = device.type == "cuda" and memory_bytes >= LARGE_PROPOSER_MEMORY_BYTES
    return LARGE_PROPOSER if is_large else config.model.name


def train_config(config: ProposerConfig) -> TrainConfig:
    """Returns the settings of the learner for a proposer."""
    return TrainConfig(
        method=TrainMethod.lora,
        lora_learning_rate=config.learning_rate,
        lora_r=config.lora_r,
        lora_alpha=2 * config.lora_r,
        epsilon=config.epsilon,
        epsilon_high=config.epsilon_high,
        num_iterations=config.num_iterations,
        beta=config.beta,
    )


def num_bytes(config: NodeConfig, name: str, device: torch.device) -> int:
    """Returns the peak memory in bytes of a proposer with this model. Raises ModelError: weights are not available."""
    load = Workload(
        num_local=1,
        num_external=0,
        num_generations=config.proposer.batch_size,
        prompt_tokens=PROMPT_TOKENS,
        completion_tokens=config.proposer.max_new_tokens,
        dtype=_dtype(config, device),
        device_type=device.type,
        evaluator_bytes=0,
        workers_bytes=0 if device.type == "cuda" else WORKER_BYTES,
    )
    shape = memory.read_shape(store.prepare(name, config.model.cache_dir))
    plan = memory.estimate(shape, TrainMethod.lora, train_config(config.proposer), load)
    return plan.peak if config.proposer.train else plan.solve


def load(config: NodeConfig, console: Console) -> LoadedModel:
    """Loads the proposer's model, with adapters if it is trained.

    Raises ModelError: its weights are not available, or do not fit into memory.
    """
    device = devices.choose_device(config.model.device)
    devices.set_threads(config.model.threads)
    devices.return_freed_memory()
    room = free_room(config.train, device, config.state_dir)
    name = choose_model(config, device, room.memory)
    folder = store.prepare(name, config.model.cache_dir, report=console.line)
    needed = num_bytes(config, name, device)
    if needed > room.memory:
        raise ModelError(
            f"a proposer with {name} needs {needed / GIB:.1f} GiB of memory where {room.memory / GIB:.1f} GiB can be "
            "used: set proposer.model to a smaller one, or proposer.url to a server"
        )
    dtype = _dtype(config, device)
    loaded = load_model(name, folder, device, dtype)
    if config.proposer.train:
        loaded = replace(loaded, model=apply_lora(loaded.model, train_config(config.proposer), config.seed))
    how = "LoRA" if config.proposer.train else "not trained"
    console.line(f"proposer: {name}, {how}, on {devices.describe(device, dtype)}")
    return loaded


def _dtype(config: NodeConfig, device: torch.device) -> torch.dtype:
    """Returns the device's fastest precision if nothing is trained, else a solver's precision."""
    if device.type == "cpu" and not config.proposer.train and devices.computes_in_bfloat16():
        return torch.bfloat16
    return devices.choose_dtype(config.model.dtype, device)
