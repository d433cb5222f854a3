"""Loads the model to measure: a prepared one as it is, or with the weights that a node has trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from codezero.config import Device, Dtype, TrainConfig, TrainMethod
from codezero.errors import CheckpointError
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.train import checkpoint
from codezero.train.checkpoint import CheckpointStore
from codezero.train.method import apply_lora


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The trained weights in a node's state folder, and the model and method that they belong to."""

    folder: Path
    round: str
    """The name of the checkpoint."""
    model: str
    method: TrainMethod
    lora_r: int
    """The rank of adapters; their lora_alpha is not stored with them and assumed to be the default."""
    is_best: bool = False
    """True if these are the weights that the node kept as its best, not the newest ones."""


def load_policy(
    name: str, cache_dir: str, device: Device, dtype: Dtype, threads: int, trained: Trained | None
) -> tuple[LoadedModel, str]:
    """Returns the model, and a description of its device and precision. Raises ModelError, ConfigError or
    CheckpointError."""
    where = devices.choose_device(device)
    devices.set_threads(threads)
    devices.return_freed_memory()
    precision = devices.choose_dtype(dtype, where)
    loaded = load_model(name, store.prepare(name, cache_dir), where, precision)
    if trained is not None:
        loaded = _with_weights(loaded, trained)
    return loaded, devices.describe(where, precision)


def _with_weights(loaded: LoadedModel, trained: Trained) -> LoadedModel:
    store = CheckpointStore(trained.folder / "checkpoints")
    found = store.load_best() if trained.is_best else store.load_latest()
    if found is None:
        raise CheckpointError(f"{trained.folder} holds no checkpoint: give the state_dir of a node that has trained")
    if trained.method is TrainMethod.lora:
        adapted = apply_lora(loaded.model, TrainConfig(lora_r=trained.lora_r), seed=0)
        loaded = replace(loaded, model=adapted)
    checkpoint.restore_weights(checkpoint.trainable_weights(loaded.model), found.learner["weights"])
    return loaded
