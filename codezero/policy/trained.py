"""Weights that a node has trained, read from its state folder into a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from peft import PeftModel
from torch import Tensor

from codezero.config import TrainConfig, TrainMethod
from codezero.llm.load import LoadedModel
from codezero.train.checkpoint import BEST, CheckpointStore, crc_of, restore_weights, trainable_weights
from codezero.train.method import DEFAULT_ADAPTERS, SOLVER, active_lora, add_lora, apply_lora


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The trained weights in a node's state folder, and the model and method that they belong to."""

    folder: Path
    checkpoint: str
    """The checkpoint's name; empty if none has been saved yet."""
    model: str
    train: TrainConfig
    """The method, and the rank and scale of adapters."""
    is_best: bool = False
    """True if these are the weights that the node kept as its best, not the newest ones."""
    beside_writer: bool = False
    """True if these are the adapters of a solver that a test writer's node has trained beside its own."""

    @property
    def fingerprint(self) -> str:
        """A text that is another one for other weights: a folder that was begun anew has checkpoints of the same
        names, so it has a CRC-32 too."""
        crc = crc_of(self.folder / "checkpoints" / (BEST if self.is_best else self.checkpoint))
        return f"{self.folder} {self.checkpoint} {crc}"


def checkpoints_in(folder: Path) -> list[str]:
    """Returns the names of the checkpoints in a state folder, ascending."""
    return sorted(path.name for path in folder.glob("checkpoints/round-*"))


def with_weights(loaded: LoadedModel, trained: Trained) -> LoadedModel:
    """Returns the model with the trained weights. Raises CheckpointError: they are of another model, damaged, or
    gone."""
    store = CheckpointStore(trained.folder / "checkpoints")
    # An earlier one would be measured under the name of this one.
    found = store.load_best() if trained.is_best else store.load_named(trained.checkpoint)
    if trained.train.method is not TrainMethod.lora:
        restore_weights(trainable_weights(loaded.model), found.learner["weights"])
        return loaded
    adapted = with_adapters(loaded, trained, DEFAULT_ADAPTERS)
    saved, learnt = (found.learner[SOLVER], SOLVER) if trained.beside_writer else (found.learner, DEFAULT_ADAPTERS)
    restore_adapters(adapted.model, DEFAULT_ADAPTERS, saved["weights"], learnt)
    return adapted


def with_adapters(loaded: LoadedModel, trained: Trained, name: str) -> LoadedModel:
    """Returns the model with new adapters of this name, of the size of the trained ones, beside those that it has,
    which stay the active ones."""
    if isinstance(loaded.model, PeftModel):
        add_lora(loaded.model, name, trained.train, seed=0)
        return loaded
    return replace(loaded, model=apply_lora(loaded.model, trained.train, seed=0, name=name))


def restore_adapters(adapted: PeftModel, name: str, weights: Mapping[str, Tensor], learnt: str) -> None:
    """Gives the model's adapters of this name the weights of adapters that were named `learnt` when they were saved."""
    with active_lora(adapted, name):
        renamed = {key.replace(f".{learnt}.", f".{name}."): weight for key, weight in weights.items()}
        restore_weights(trainable_weights(adapted), renamed)
