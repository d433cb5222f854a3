"""Loads the model to measure: a prepared one as it is, or with the weights that a node has trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codezero.config import Device, Dtype, TrainConfig, TrainMethod
from codezero.errors import StateError
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.policy.trained import Trained, checkpoints_in, with_weights
from codezero.prompts import solver as prompt
from codezero.runtime import state
from codezero.train import memory
from codezero.train.checkpoint import BEST
from codezero.train.method import free_room

ROWS, GPU_ROWS = 64, 256
"""The most completions that are written at a time."""


def trained_in(folder: Path) -> Trained:
    """Returns what a solver has trained in its state folder; in the folder's `best`, or in `best` alone for that of
    ./state, the weights that it kept as its best. Raises StateError: there are none."""
    best = ""
    if folder.name == BEST:
        folder = Path("state") if folder == Path(BEST) else folder.parent
        number = state.best_round(folder)
        if number is None:
            raise StateError(
                f"{folder} has no best checkpoint: a node keeps one from its second whole pass of "
                "probes on; give the state_dir alone for the newest checkpoint"
            )
        best = f"best, of round {number}"
    folder = folder.absolute()
    bound, rounds = state.bound_settings(folder), checkpoints_in(folder)
    if "model.name" not in bound or not rounds:
        raise StateError(f"{folder} holds no checkpoint: give the state_dir of a node that has finished a round")
    beside_writer = bound.get("verifier.train_solver")
    if beside_writer is False:
        raise StateError(f"{folder} holds a test writer and no solver: use it with --best-of 8 --verify --writer")
    return Trained(
        folder=folder,
        checkpoint=best or rounds[-1],
        is_best=best != "",
        beside_writer=beside_writer is True,
        model=bound["model.name"],
        train=TrainConfig(
            method=TrainMethod(bound.get("train.method", "full")),
            lora_r=int(bound.get("train.lora_r", TrainConfig().lora_r)),
            lora_alpha=int(bound.get("train.lora_alpha", TrainConfig().lora_alpha)),  # older folders lack it
        ),
    )


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
        loaded = with_weights(loaded, trained)
    return loaded, devices.describe(where, precision)


def rows_at_once(policy: LoadedModel, questions: Sequence[str], max_new_tokens: int) -> int:
    """Returns the number of completions to write at a time: as many as the device is fast with, if their key-value
    cache takes no more than half of the memory that is left."""
    device, shape = policy.model.device, memory.shape_of(policy.model)
    longest = max(len(policy.encode_chat(prompt.messages(one, prompt.SYSTEM))) for one in questions)
    length = min(longest + max_new_tokens, policy.context_length)
    each: int = length * shape.cached_a_token * policy.model.dtype.itemsize
    left = free_room(TrainConfig(), device, Path()).memory // 2
    return max(1, min(GPU_ROWS if device.type == "cuda" else ROWS, left // each))
