"""The folder that is pushed: weights of one policy version as they were saved, in the files that others load.

The weights come from a checkpoint and not from the model, which trains on meanwhile: a checkpoint is of one
policy version, is written anyway, and reading it through the page cache takes neither a second copy in memory, nor the
turn at the model, nor time of a round.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from codezero.config import TrainMethod
from codezero.errors import CodezeroError
from codezero.llm.load import LoadedModel
from codezero.publish.card import NodeFacts

SHARD = "500MB"
"""Of a file of weights: what a broken upload has to send again."""
_SPARE_BYTES = 512 << 20
_GIB = 1 << 30


class PublishError(CodezeroError):
    """This time the model cannot be pushed; training goes on."""

    may_pass = True


class Packer:
    """Of one node's model."""

    def __init__(
        self,
        policy: LoadedModel,
        facts: NodeFacts,
        folder: Path,
        read: Callable[[Path], Mapping[str, torch.Tensor]],
    ) -> None:
        """Keeps the tokenizer's files in `folder`, which is emptied. Call it in the thread that uses the tokenizer.

        `read` gives the trained weights of a checkpoint by the names they have in the model. Raises OSError.
        """
        self.facts, self._model, self._folder, self._read = facts, policy.model, folder, read
        self.target = folder / "model"
        shutil.rmtree(folder, ignore_errors=True)  # of a node that was killed
        policy.tokenizer.save_pretrained(folder / "tokenizer")

    def pack(self, checkpoint: Path) -> Path:
        """Writes the folder to push, in place of the one before. Raises PublishError: no room, or no checkpoint."""
        self.clear()
        try:
            weights = self._read(checkpoint)
            self._need_room(weights, checkpoint)
            shutil.copytree(self._folder / "tokenizer", self.target)
            # Both read only names and settings of the model; the weights are those given.
            if self.facts.method is TrainMethod.lora:
                self._write_adapter(dict(weights))
            else:
                self._model.save_pretrained(self.target, state_dict=self._whole(weights), max_shard_size=SHARD)
        except (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
            self.clear()
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise PublishError(
                f"push: the files could not be written, {reason}: tried again with a later round"
            ) from error
        return self.target

    def clear(self) -> None:
        shutil.rmtree(self.target, ignore_errors=True)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write_adapter(self, weights: dict[str, torch.Tensor]) -> None:
        self._model.save_pretrained(self.target, state_dict=weights, save_embedding_layers=False)
        path = self.target / "adapter_config.json"
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        settings["base_model_name_or_path"] = self.facts.base or self.facts.model  # it was a folder of this machine
        path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    def _whole(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """In the model's precision, with what it has beside its parameters, and training does not change."""
        parameters = dict(self._model.named_parameters(remove_duplicate=False))
        rest = {name: value for name, value in self._model.state_dict().items() if name not in parameters}
        return {**{name: value.to(parameters[name].dtype) for name, value in weights.items()}, **rest}

    def _need_room(self, weights: Mapping[str, torch.Tensor], checkpoint: Path) -> None:
        """The next checkpoint must still have its place."""
        size = sum(weight.numel() * weight.element_size() for weight in weights.values())
        wanted = size + sum(file.stat().st_size for file in checkpoint.iterdir()) + _SPARE_BYTES
        free = shutil.disk_usage(self._folder).free
        if free < wanted:
            raise PublishError(
                f"push: {free / _GIB:.1f} GiB of disk are free in {self._folder.parent}, {wanted / _GIB:.1f} GiB are "
                "needed for the files and the next checkpoint: free some"
            )
