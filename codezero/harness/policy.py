"""Loads the model to measure: a prepared one as it is, or with the weights that a node has trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from codezero.config import Device, Dtype, TrainConfig, TrainMethod, VerifierConfig
from codezero.errors import CheckpointError, StateError
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.policy import writer
from codezero.runtime import state
from codezero.train import checkpoint
from codezero.train.checkpoint import BEST, CheckpointStore
from codezero.train.method import apply_lora
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
    bound, rounds = state.bound_settings(folder), _rounds(folder)
    if "model.name" not in bound or not rounds:
        raise StateError(f"{folder} holds no checkpoint: give the state_dir of a node that has finished a round")
    beside_writer = bound.get("verifier.train_solver")
    if beside_writer is False:
        raise StateError(f"{folder} holds a test writer and no solver: use it with --best-of 8 --verify --writer")
    return Trained(
        folder=folder,
        round=best or rounds[-1],
        is_best=best != "",
        beside_writer=beside_writer is True,
        model=bound["model.name"],
        train=TrainConfig(
            method=TrainMethod(bound.get("train.method", "full")),
            lora_r=int(bound.get("train.lora_r", TrainConfig().lora_r)),
            lora_alpha=int(bound.get("train.lora_alpha", TrainConfig().lora_alpha)),  # older folders lack it
        ),
    )


def writer_in(folder: Path) -> Trained:
    """Returns the newest weights of the test writer in a state folder. Raises StateError: there are none."""
    own = folder_of(folder, VERIFIER).absolute()
    bound, batches = state.bound_settings(own), _rounds(own)
    if "model.name" not in bound or not batches:
        raise StateError(
            f"{folder} holds no test writer: give the state_dir of a `codezero verify` that has finished a batch"
        )
    settings = VerifierConfig(lora_r=int(bound["verifier.lora_r"]))
    return Trained(folder=own, round=batches[-1], model=bound["model.name"], train=writer.train_config(settings))


def _rounds(folder: Path) -> list[str]:
    """Returns the names of the checkpoints in a state folder, ascending."""
    return sorted(path.name for path in folder.glob("checkpoints/round-*"))


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
    if trained.train.method is TrainMethod.lora:
        adapted = apply_lora(loaded.model, trained.train, seed=0)
        loaded = replace(loaded, model=adapted)
    saved = found.learner["weights"]
    if trained.beside_writer:
        learnt = found.learner[SOLVER]["weights"]
        saved = {name.replace(f".{SOLVER}.", ".default."): weight for name, weight in learnt.items()}
    checkpoint.restore_weights(checkpoint.trainable_weights(loaded.model), saved)
    return loaded
