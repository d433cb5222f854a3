"""Weights that a node has trained, in its state folder: those of a test writer, and of the solver beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from peft import PeftModel

from codezero.config import TrainConfig, TrainMethod, VerifierConfig
from codezero.errors import CheckpointError, StateError
from codezero.llm.load import LoadedModel
from codezero.policy import writer
from codezero.runtime import state
from codezero.train.checkpoint import CheckpointStore, restore_weights, trainable_weights
from codezero.train.method import OWN, active_lora, add_lora, apply_lora
from codezero.verifier.build import SOLVER
from codezero.views.runs import VERIFIER, folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The trained weights in a node's state folder, and the model and method that they belong to."""

    folder: Path
    round: str
    """The name of the checkpoint."""
    model: str
    train: TrainConfig
    """The method, and the rank and scale of adapters."""
    is_best: bool = False
    """True if these are the weights that the node kept as its best, not the newest ones."""
    beside_writer: bool = False
    """True if these are the adapters of a solver that a test writer's node has trained beside its own."""


def writer_in(folder: Path) -> Trained:
    """Returns the newest weights of the test writer in a state folder. Raises StateError: there are none."""
    own = folder_of(folder, VERIFIER).absolute()
    bound, batches = state.bound_settings(own), checkpoints_in(own)
    if "model.name" not in bound or not batches:
        raise StateError(
            f"{folder} holds no test writer: give the state_dir of a `codezero verify` that has finished a batch"
        )
    settings = VerifierConfig(lora_r=int(bound["verifier.lora_r"]))
    return Trained(folder=own, round=batches[-1], model=bound["model.name"], train=writer.train_config(settings))


def checkpoints_in(folder: Path) -> list[str]:
    """Returns the names of the checkpoints in a state folder, ascending."""
    return sorted(path.name for path in folder.glob("checkpoints/round-*"))


def with_weights(loaded: LoadedModel, trained: Trained, name: str = OWN) -> LoadedModel:
    """Returns the model with the trained weights. Adapters get this name, beside those that the model has, which stay
    the active ones. Raises CheckpointError: they are of another model, or gone."""
    store = CheckpointStore(trained.folder / "checkpoints")
    found = store.load_best() if trained.is_best else store.load_latest()
    if found is None:
        raise CheckpointError(f"{trained.folder} holds no checkpoint: give the state_dir of a node that has trained")
    if trained.train.method is not TrainMethod.lora:
        restore_weights(trainable_weights(loaded.model), found.learner["weights"])
        return loaded
    adapted = loaded.model
    if isinstance(adapted, PeftModel):
        add_lora(adapted, name, trained.train, seed=0)
    else:
        adapted = apply_lora(adapted, trained.train, seed=0, name=name)
    saved, learnt = (found.learner[SOLVER], SOLVER) if trained.beside_writer else (found.learner, OWN)
    with active_lora(adapted, name):
        renamed = {key.replace(f".{learnt}.", f".{name}."): weight for key, weight in saved["weights"].items()}
        restore_weights(trainable_weights(adapted), renamed)
    return replace(loaded, model=adapted)
