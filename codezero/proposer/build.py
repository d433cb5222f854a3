"""Chooses and loads the proposer's model by the configuration: its name, backend, memory and precision."""

from __future__ import annotations

import torch

from codezero.config import NodeConfig, ProposerBackend, ProposerConfig
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel
from codezero.policy import writer
from codezero.policy.writer import Writing
from codezero.runtime.console import Console
from codezero.train.memory import GIB
from codezero.train.method import free_room

LARGE_PROPOSER = "Qwen/Qwen3-4B"
LARGE_PROPOSER_MEMORY_BYTES = 24 * GIB
"""The free accelerator memory from which proposer.model=auto is the large model, which needs about half of it."""


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


def num_bytes(config: NodeConfig, name: str, device: torch.device) -> int:
    """Returns the peak memory in bytes of a proposer with this model. Raises ModelError: weights are not available."""
    folder = store.prepare(name, config.model.cache_dir)
    return writer.num_bytes(folder, _writing(config.proposer), _dtype(config, device), device)


def load(config: NodeConfig, console: Console) -> LoadedModel:
    """Loads the proposer's model, with adapters if it is trained.

    Raises ModelError: its weights are not available, or do not fit into memory.
    """
    device = writer.prepare_device(config.model)
    room = free_room(config.train, device, config.state_dir)
    name = choose_model(config, device, room.memory)
    return writer.load_writer(
        name,
        store.prepare(name, config.model.cache_dir, report=console.line),
        _writing(config.proposer),
        _dtype(config, device),
        device,
        room.memory,
        config.seed,
        "set proposer.model to a smaller one, or proposer.url to a server",
        console,
    )


def _writing(config: ProposerConfig) -> Writing:
    return Writing(
        role="proposer",
        num_groups=1,
        num_generations=config.batch_size,
        max_new_tokens=config.max_new_tokens,
        train=writer.train_config(config),
        is_trained=config.train,
    )


def _dtype(config: NodeConfig, device: torch.device) -> torch.dtype:
    """Returns the device's fastest precision if nothing is trained, else a solver's precision."""
    if device.type == "cpu" and not config.proposer.train and devices.computes_in_bfloat16():
        return torch.bfloat16
    return devices.choose_dtype(config.model.dtype, device)
