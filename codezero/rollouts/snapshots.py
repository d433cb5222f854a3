"""A trainer's weights as rollout servers have them, in bfloat16: files that lead from one version to the next.

Differences are kept while all of them are smaller than the weights, so that a server behind a slow link, or one that
was away for some updates, gets what it has missed. Every version has a name that is drawn at random, but for the
weights that a model starts with, whose name is their hash: a server that has just loaded them needs no upload. A
trainer that continues after a kill has forgotten its names, and sends all of its weights again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
    """The newest version of the trained weights, and the way to it from those before."""

    def __init__(self, model: Any, folder: Path, transfer: Transfer) -> None:
        """`model` has the weights that it starts with. Raises RolloutError: the folder cannot be written."""
        self.base = fingerprint(base_weights(model))
        """The name of the weights that the model starts with; of a peft model those under its adapters."""
        self._folder, self._transfer = folder, transfer
        self._lora = _lora(model)
        self._weights = {} if self._lora else {name: rounded(weight) for name, weight in base_weights(model)}
        self.name = "" if self._lora else self.base
        """The name of the newest version."""
        self._steps: dict[str, tuple[str, Path]] = {}
        """The next version, and the file that leads to it, by version; the oldest first."""
        self._lock = threading.Lock()
        self._is_closed = False
        with self._naming_errors():
            folder.mkdir(parents=True, exist_ok=True)
            self._remove_files()  # of an earlier process that was killed, which had other names

    def close(self) -> None:
        """Removes the files, of which no later process knows the names. Uploads under way end with what they have."""
        with self._lock, suppress(OSError):  # the next start tries it again
            self._is_closed = True
            self._remove_files()

    def _remove_files(self) -> None:
        for file in self._folder.glob("*.weights"):
            file.unlink()

    def take(self, model: Any) -> str:
        """Makes the model's weights the newest version, unless they are, and returns its name.

        Raises RolloutError: files of versions before cannot be removed.
        """
        pairs = adapter_weights(model).items() if self._lora else base_weights(model)
        new = {name: rounded(weight) for name, weight in pairs}
        with self._lock:
            if self._weights.keys() == new.keys() and all(
                torch.equal(weight.view(torch.int16), new[name].view(torch.int16))
                for name, weight in self._weights.items()
            ):
                return self.name
            name = secrets.token_hex(16)
            with self._naming_errors():
                self._full.unlink(missing_ok=True)
                if not self._lora and self._transfer is not Transfer.full:
                    self._keep_difference(name, new)
            self.name, self._weights = name, new
            return name

    def open_for(self, has: str) -> tuple[str, BinaryIO] | None:
        """Returns the name of a version and the file that makes it of the one with the name `has`, to be read and
        closed: of the next version, or, where the way from there is not known, of the newest. None if `has` is the
        newest one, or after the end. Raises RolloutError: it cannot be written or read."""
        with self._lock, self._naming_errors():
            if self._is_closed or has == self.name:
                return None
            self._forget_deleted()
            if has in self._steps:
                name, file = self._steps[has]
                return name, file.open("rb")
            if not self._full.exists():
                self._write_all()
            return self.name, self._full.open("rb")

    @property
    def _full(self) -> Path:
        return self._folder / "all.weights"

    def _write_all(self) -> None:
        """Writes the file of all weights, in one step, since a part of it would be sent as the whole."""
        kind, part = "adapter" if self._lora else "full", self._folder / "part.weights"
        self._folder.mkdir(exist_ok=True)  # somebody may have deleted it with its files
        try:
            with safetensors_written(part):
                save_file(self._weights, part, self._facts(self.name, kind=kind, whole=whole(self._weights)))
            part.replace(self._full)
        finally:
            part.unlink(missing_ok=True)

    def _keep_difference(self, name: str, new: Mapping[str, Tensor]) -> None:
        """Adds the step to a version's weights. Removes the oldest ones while all together are larger than the weights;
        every one if this one cannot be written, since those before lead nowhere without it."""
        self._forget_deleted()
        file, most = self._folder / f"{name}.weights", sum(weight.nbytes for weight in new.values())
        try:
            file.write_bytes(self._packed_difference(name, new))
            self._steps[self.name] = name, file
        except OSError:  # all weights have to be sent then, which fails with a reason for each server
            file.unlink(missing_ok=True)
            most = 0
        sizes = {has: step.stat().st_size for has, (_, step) in self._steps.items()}
        for has in list(sizes):
            if sum(sizes.values()) > most:
                sizes.pop(has)
                self._steps.pop(has)[1].unlink()

    def _forget_deleted(self) -> None:
        """Forgets files that somebody has deleted, such as a user whose disk is full."""
        self._steps = {has: step for has, step in self._steps.items() if step[1].exists()}

    def _packed_difference(self, name: str, new: Mapping[str, Tensor]) -> bytes:
        """Returns a file that is smaller than all weights even if each has changed, since zstd packs places that follow
        one another into nothing, and the upper bytes into less than a half."""
        parts: dict[str, Tensor] = {}
        sums: dict[str, int] = {}
        for key, weight in new.items():
            found = difference(self._weights[key], weight)
            parts |= {f"{key}/{part}": values for part, values in found.items()}
            if found:
                sums[key] = checksum(weight)
        raw = save(parts, self._facts(name, kind="delta", base=self.name, sums=sums))
        return zstandard.compress(raw, LEVEL)

    def _facts(self, name: str, **facts: Any) -> dict[str, str]:
        return {"codezero": json.dumps({"format": FORMAT, "name": name, "lora": self._lora, **facts})}

    def _naming_errors(self) -> Any:
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
