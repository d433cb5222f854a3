"""A trainer's weights as rollout servers have them, in bfloat16: files that lead from one version to the next.

Every version has a name that is drawn at random, but for the weights that a model starts with, whose name is their
hash: a server that has just loaded them needs no upload. A trainer that continues after a kill has forgotten its
names, and sends all of its weights again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
import zstandard
from safetensors.torch import save, save_file
from torch import Tensor

from codezero.config import Transfer
from codezero.errors import RolloutError, told_as
from codezero.llm.logprobs import causal_lm
from codezero.rollouts.delta import checksum, difference, rounded
from codezero.runtime.files import safetensors_written

FORMAT = "codezero-weights-1"
LEVEL = 1
"""zstd's: higher ones save 2 % and take several times as long."""


def base_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yields names and values of the weights, sorted by name; of a peft model those under its adapters."""
    found = {name.replace(".base_layer.", "."): weight for name, weight in causal_lm(model).named_parameters()}
    yield from sorted((name, weight) for name, weight in found.items() if ".lora_" not in name)


def adapter_weights(model: Any) -> dict[str, Tensor]:
    """Returns the weights of a peft model's adapters by name."""
    return {name: weight for name, weight in model.named_parameters() if ".lora_" in name}


def fingerprint(weights: Iterator[tuple[str, Tensor]]) -> str:
    """Returns the hash of names and values, rounded to bfloat16, as 32 hexadecimal digits."""
    digest = hashlib.sha256()
    for name, weight in weights:
        digest.update(f"{name} {tuple(weight.shape)}\n".encode())
        digest.update(rounded(weight).view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:32]


class Snapshots:
    """The newest version of the trained weights, and the way to it from the one before."""

    def __init__(self, model: Any, folder: Path, transfer: Transfer) -> None:
        """`model` has the weights that it starts with. Raises RolloutError: the folder cannot be written."""
        self.base = fingerprint(base_weights(model))
        """The name of the weights that the model starts with; of a peft model those under its adapters."""
        self._folder, self._transfer = folder, transfer
        self._lora = _lora(model)
        self._weights = {} if self._lora else {name: rounded(weight) for name, weight in base_weights(model)}
        self.name = "" if self._lora else self.base
        """The name of the newest version."""
        self._before, self._lock = "", threading.Lock()
        with self._told():
            folder.mkdir(parents=True, exist_ok=True)
            self._remove_files()  # of an earlier process, which had other names

    def take(self, model: Any) -> str:
        """Makes the model's weights the newest version, unless they are, and returns its name.

        Raises RolloutError: the files of the version before cannot be removed.
        """
        pairs = adapter_weights(model).items() if self._lora else base_weights(model)
        new = {name: rounded(weight) for name, weight in pairs}
        with self._lock:
            if self._weights.keys() == new.keys() and all(
                torch.equal(weight.view(torch.int16), new[name].view(torch.int16))
                for name, weight in self._weights.items()
            ):
                return self.name
            before, name = self.name, secrets.token_hex(16)
            with self._told():
                self._remove_files()
            sends_all = self._lora or self._transfer is Transfer.full
            differs = not sends_all and self._has_written_difference(before, name, new)
            self._before, self.name, self._weights = before if differs else "", name, new
            return name

    def open_for(self, has: str) -> tuple[str, BinaryIO] | None:
        """Returns the name of the newest version, and the file that makes it of the one with the name `has`, to be read
        and closed; None if that is the newest one. Raises RolloutError: it cannot be written or read."""
        with self._lock, self._told():
            if has == self.name:
                return None
            if has == self._before and self._before:
                return self.name, self._difference.open("rb")
            if not self._full.exists():
                self._write_all()
            return self.name, self._full.open("rb")

    def _remove_files(self) -> None:
        for file in self._folder.glob("*.weights"):
            file.unlink()

    @property
    def _full(self) -> Path:
        return self._folder / "all.weights"

    @property
    def _difference(self) -> Path:
        return self._folder / "difference.weights"

    def _write_all(self) -> None:
        """Writes the file of all weights, in one step, since a part of it would be sent as the whole."""
        kind, part = "adapter" if self._lora else "full", self._folder / "part.weights"
        try:
            with safetensors_written(part):
                save_file(self._weights, part, self._facts(self.name, kind=kind, whole=whole(self._weights)))
            part.replace(self._full)
        finally:
            part.unlink(missing_ok=True)

    def _has_written_difference(self, before: str, name: str, new: Mapping[str, Tensor]) -> bool:
        """Writes a file that is smaller than all weights even if each has changed, since zstd packs places that follow
        one another into nothing, and the upper bytes into less than a half. Returns False if it cannot be written."""
        parts: dict[str, Tensor] = {}
        sums: dict[str, int] = {}
        for key, weight in new.items():
            found = difference(self._weights[key], weight)
            parts |= {f"{key}/{part}": values for part, values in found.items()}
            if found:
                sums[key] = checksum(weight)
        raw = save(parts, self._facts(name, kind="delta", base=before, sums=sums))
        try:
            self._difference.write_bytes(zstandard.compress(raw, LEVEL))
        except OSError:  # all weights have to be sent then, which fails with a reason for each server
            self._difference.unlink(missing_ok=True)
            return False
        return True

    def _facts(self, name: str, **facts: Any) -> dict[str, str]:
        return {"codezero": json.dumps({"format": FORMAT, "name": name, "lora": self._lora, **facts})}

    def _told(self) -> Any:
        do = "free some space, or set rollout.engine=transformers"
        return told_as(RolloutError, f"cannot write weights for rollout servers in {self._folder}", do)


def whole(weights: Mapping[str, Tensor]) -> str:
    """Returns the hash of all weights, which are `rounded`."""
    return fingerprint((name, weights[name]) for name in sorted(weights))


def _lora(model: Any) -> dict[str, int] | None:
    """Returns rank and scale of the adapters; None without them."""
    if not hasattr(model, "peft_config"):
        return None
    config = model.peft_config["default"]
    return {"r": config.r, "alpha": config.lora_alpha}
