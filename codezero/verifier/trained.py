"""Weights that a node trains, in its state folder: those of a test writer, and of the solver beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from peft import PeftModel
from torch import Tensor

from codezero.config import TrainConfig, TrainMethod, VerifierConfig
from codezero.errors import CheckpointError, StateError
from codezero.llm.load import LoadedModel
from codezero.policy import writer
from codezero.runtime import state
from codezero.train.checkpoint import CheckpointStore, newest_weights, restore_weights, trainable_weights
from codezero.train.method import OWN, active_lora, add_lora, apply_lora
from codezero.verifier.build import SOLVER
from codezero.views.runs import VERIFIER, folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The trained weights in a node's state folder, and the model and method that they belong to."""

    folder: Path
    round: str
    """The name of the checkpoint; empty if none has been saved yet."""
    model: str
    train: TrainConfig
    """The method, and the rank and scale of adapters."""
    is_best: bool = False
    """True if these are the weights that the node kept as its best, not the newest ones."""
    beside_writer: bool = False
    """True if these are the adapters of a solver that a test writer's node has trained beside its own."""


def writer_in(folder: Path) -> Trained:
    """Returns the newest weights of the test writer in a state folder. Raises StateError: there are none."""
    found = begun_in(folder)
    if not found.round:
        raise StateError(f"{folder} holds no checkpoint yet: wait until the `codezero verify` there has done a batch")
    return found


def begun_in(folder: Path) -> Trained:
    """Returns what the test writer in a state folder trains, also before its first checkpoint. Raises StateError: no
    test writer has begun there."""
    own = folder_of(folder, VERIFIER).absolute()
    bound, batches = state.bound_settings(own), checkpoints_in(own)
    if "model.name" not in bound:
        raise StateError(
            f"{folder} holds no test writer: give the state_dir of a `codezero verify` that has loaded its model"
        )
    settings = VerifierConfig(lora_r=int(bound["verifier.lora_r"]))
    newest = batches[-1] if batches else ""
    return Trained(folder=own, round=newest, model=bound["model.name"], train=writer.train_config(settings))


def checkpoints_in(folder: Path) -> list[str]:
    """Returns the names of the checkpoints in a state folder, ascending."""
    return sorted(path.name for path in folder.glob("checkpoints/round-*"))


def with_weights(loaded: LoadedModel, trained: Trained) -> LoadedModel:
    """Returns the model with the trained weights. Raises CheckpointError: they are of another model, or gone."""
    store = CheckpointStore(trained.folder / "checkpoints")
    found = store.load_best() if trained.is_best else store.load_latest()
    if found is None:
        raise CheckpointError(f"{trained.folder} holds no checkpoint: give the state_dir of a node that has trained")
    if trained.train.method is not TrainMethod.lora:
        restore_weights(trainable_weights(loaded.model), found.learner["weights"])
        return loaded
    adapted = with_adapters(loaded, trained, OWN)
    saved, learnt = (found.learner[SOLVER], SOLVER) if trained.beside_writer else (found.learner, OWN)
    _restore(adapted.model, OWN, saved["weights"], learnt)
    return adapted


def with_adapters(loaded: LoadedModel, trained: Trained, name: str) -> LoadedModel:
    """Returns the model with new adapters of this name, of the size of the trained ones, beside those that it has,
    which stay the active ones."""
    if isinstance(loaded.model, PeftModel):
        add_lora(loaded.model, name, trained.train, seed=0)
        return loaded
    return replace(loaded, model=apply_lora(loaded.model, trained.train, seed=0, name=name))


class FollowedWriter:
    """Adapters of a model that follow those of a test writer, which may be learning in another process."""

    def __init__(self, adapted: PeftModel, name: str, folder: Path) -> None:
        """`name` is that of the adapters, `folder` the test writer's state folder."""
        self._adapted, self._name, self._folder = adapted, name, folder_of(folder, VERIFIER)
        self._batch = 0

    def update(self) -> int:
        """Gives the adapters the weights of the newest checkpoint; they stay as they are where there is none that is
        new and can be read. Returns the number of its batch, 0 before the first one. Raises CheckpointError: it is of
        another model or rank."""
        found = newest_weights(self._folder / "checkpoints", self._batch)
        if found is not None:
            number, weights = found
            try:
                _restore(self._adapted, self._name, weights, OWN)
            except CheckpointError as error:
                raise CheckpointError(
                    f"{self._folder} holds another test writer than at the start, of another model or "
                    "verifier.lora_r: start the proposer again"
                ) from error
            self._batch = number
        return self._batch


def _restore(adapted: PeftModel, name: str, weights: Mapping[str, Tensor], learnt: str) -> None:
    """Gives the model's adapters of this name the weights of adapters that were named `learnt` when they were saved."""
    with active_lora(adapted, name):
        renamed = {key.replace(f".{learnt}.", f".{name}."): weight for key, weight in weights.items()}
        restore_weights(trainable_weights(adapted), renamed)
