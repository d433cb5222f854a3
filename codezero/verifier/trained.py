"""The weights of a test writer in its state folder, for whoever writes with them."""

from __future__ import annotations

from pathlib import Path

from peft import PeftModel

from codezero.config import VerifierConfig
from codezero.errors import CheckpointError, StateError
from codezero.observe.roles import VERIFIER, folder_of
from codezero.policy import writer
from codezero.policy.trained import Trained, checkpoints_in, restore_adapters
from codezero.runtime import state
from codezero.train.checkpoint import newest_weights
from codezero.train.method import DEFAULT_ADAPTERS


def writer_in(folder: Path) -> Trained:
    """Returns the newest weights of the test writer in a state folder. Raises StateError: there are none."""
    found = begun_in(folder)
    if not found.checkpoint:
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
    train = writer.train_config(VerifierConfig().learning_rate, int(bound["verifier.lora_r"]))
    return Trained(folder=own, checkpoint=batches[-1] if batches else "", model=bound["model.name"], train=train)


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
                restore_adapters(self._adapted, self._name, weights, DEFAULT_ADAPTERS)
            except CheckpointError as error:
                raise CheckpointError(
                    f"{self._folder} holds another test writer than at the start, of another model or "
                    "verifier.lora_r: start the proposer again"
                ) from error
            self._batch = number
        return self._batch
