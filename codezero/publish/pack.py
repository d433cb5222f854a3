"""Writes the folder that is pushed: the weights of one policy version in the files that other programs load.

The weights come from a checkpoint and not from the model, which is trained meanwhile. A checkpoint is of one
policy version and is written anyway; reading it takes no second copy in memory, no lock on the model, and no time of a
round.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from codezero.config import TrainMethod
from codezero.errors import CodezeroError, first_line
from codezero.llm.load import LoadedModel
from codezero.publish.card import NodeFacts
from codezero.runtime.amounts import gib
from codezero.runtime.files import safetensors_written
from codezero.train.checkpoint import saved_weights

SHARD = "500MB"
"""The largest size of a file of weights, which an interrupted upload has to send again."""
_SPARE_BYTES = 512 << 20


class PublishError(CodezeroError):
    """Raised if the model cannot be pushed this time; training continues."""

    may_pass = True


class Packer:
    """Writes the folders to push of one node's model."""

    def __init__(self, policy: LoadedModel, facts: NodeFacts, folder: Path) -> None:
        """Empties `folder` and writes the tokenizer's files to it. Call it in the thread that uses the tokenizer.
        Raises OSError."""
        self.facts, self._model, self._folder = facts, policy.model, folder
        self.target = folder / "model"
        shutil.rmtree(folder, ignore_errors=True)  # left behind by a node that was killed
        policy.tokenizer.save_pretrained(folder / "tokenizer")

    def pack(self, checkpoint: Path) -> Path:
        """Writes the folder to push, in place of the last one, and returns it. Raises PublishError: the disk has too
        little space, or the checkpoint cannot be read."""
        self.clear()
        try:
            weights = saved_weights(checkpoint)
            self._require_space(weights, checkpoint)
            shutil.copytree(self._folder / "tokenizer", self.target)
            # Both take only names and settings from the model, and the weights from the checkpoint.
            with safetensors_written(self.target):
                if self.facts.method is TrainMethod.lora:
                    self._write_adapter(weights)
                else:
                    self._model.save_pretrained(self.target, state_dict=self._whole(weights), max_shard_size=SHARD)
        except (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
            self.clear()
            raise PublishError(
                f"push: the files could not be written, {first_line(error)}: tried again with a later round"
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
        settings["base_model_name_or_path"] = self.facts.base or self.facts.model  # not the folder on this machine
        path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    def _whole(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the weights in the model's precision, and its buffers, which training does not change."""
        parameters = dict(self._model.named_parameters(remove_duplicate=False))
        rest = {name: value for name, value in self._model.state_dict().items() if name not in parameters}
        return {**{name: value.to(parameters[name].dtype) for name, value in weights.items()}, **rest}

    def _require_space(self, weights: Mapping[str, torch.Tensor], checkpoint: Path) -> None:
        """Raises PublishError: the disk lacks space for the files and the next checkpoint."""
        size = sum(weight.numel() * weight.element_size() for weight in weights.values())
        wanted = size + sum(file.stat().st_size for file in checkpoint.iterdir()) + _SPARE_BYTES
        free = shutil.disk_usage(self._folder).free
        if free < wanted:
            raise PublishError(
                f"push: {gib(free)} of disk are free in {self._folder.parent}, {gib(wanted)} are needed for the files "
                "and the next checkpoint: free some"
            )
