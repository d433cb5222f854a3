"""The weights that a rollout server samples with: takes over a trainer's files of `snapshots`, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import torch
import zstandard
from msgspec import Meta
from safetensors import SafetensorError, safe_open
from torch import Tensor

from codezero.config import TrainConfig
from codezero.config.training import MOST_RANK
from codezero.errors import TransferError
from codezero.rollouts import delta
from codezero.rollouts.snapshots import adapter_weights, base_weights, fingerprint, whole
from codezero.train.method import apply_lora

COPY_BYTES = 1 << 20
_Name = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class _Lora(msgspec.Struct, frozen=True):
    r: Annotated[int, Meta(ge=1, le=MOST_RANK)]
    alpha: Annotated[int, Meta(ge=1, le=1 << 20)]


class _Facts(msgspec.Struct):
    format: Literal["codezero-weights-1"]
    name: _Name
    kind: Literal["full", "adapter", "delta"]
    lora: _Lora | None = None
    whole: str = ""
    base: str = ""
    sums: dict[str, int] = {}


class OtherBase(TransferError):
    """The file is the difference to other weights than those here: all of them have to be sent."""


class ServedWeights:
    """A model whose weights a trainer replaces. Not for several threads at once."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.base = fingerprint(base_weights(model))
        """The name of the weights that the model was loaded with."""
        self.name = self.base
        """The name of the weights in use; empty after a failure in the middle of a change, until all are sent again."""
        self._lora: _Lora | None = None
        self.most_bytes = _most_bytes(model)
        """The size of the largest file that can be of use."""

    def take_over(self, file: Path) -> None:
        """Makes the file's weights those in use. Raises TransferError: it is damaged, and nothing has changed, or not
        for this model; OSError: it cannot be read."""
        with _opened(file, self.most_bytes) as (facts, parts):
            if facts.kind == "delta":
                self._change(facts, parts)
            elif facts.kind == "full":
                self._replace(_checked(facts, parts), dict(self._full()))
            else:
                self._adapt(facts, parts)
            self.name = facts.name

    def _full(self) -> Iterator[tuple[str, Tensor]]:
        if self._lora is not None:
            raise TransferError("this server has adapters of another run: start it again to train all weights")
        return base_weights(self.model)

    def _replace(self, new: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        sizes = {name: weight.shape for name, weight in weights.items()}
        if {name: weight.shape for name, weight in new.items()} != sizes:
            raise TransferError("its weights have other names or shapes than this server's model: use the same one")
        self.name = ""
        for name, weight in weights.items():
            weight.data.copy_(new[name])

    def _adapt(self, facts: _Facts, parts: _Parts) -> None:
        if facts.lora is None:
            raise TransferError("it names no rank of its adapters")
        if self.name != self.base and self._lora is None:
            raise TransferError("this server has all weights of another run: start it again to use adapters")
        if self._lora not in (None, facts.lora):
            raise TransferError(
                f"this server has adapters with lora_r={self._lora.r} and lora_alpha={self._lora.alpha}: start it "
                "again for others"
            )
        new = _checked(facts, parts)
        if self._lora is None:
            self.model = apply_lora(self.model, TrainConfig(lora_r=facts.lora.r, lora_alpha=facts.lora.alpha), 0)
            self._lora = facts.lora
        self._replace(new, adapter_weights(self.model))

    def _change(self, facts: _Facts, parts: _Parts) -> None:
        if not self.name or facts.base != self.name:
            raise OtherBase("it is the difference to other weights than those here: send all of them")
        weights = dict(self._full())
        for name, total in facts.sums.items():  # first all are checked, then all are changed
            weight = weights.get(name)
            if weight is None:
                raise TransferError("it changes a weight that this server's model does not have")
            places, values = parts.changes(name, weight.numel())
            new = delta.rounded(weight)
            delta.bits(new)[places] = values
            if delta.checksum(new) != total:
                raise OtherBase("the changed weights have another checksum than the trainer's: send all of them")
        is_loaded, self.name = self.name == self.base, ""
        for name, weight in weights.items():
            if is_loaded:  # the trainer's difference is to these, rounded
                weight.data.copy_(delta.rounded(weight))
            if name in facts.sums:
                places, values = parts.changes(name, weight.numel())
                to = torch.from_numpy(places).to(weight.device)
                weight.data.view(-1)[to] = torch.from_numpy(values.view("int16")).view(torch.bfloat16).to(weight)


def _checked(facts: _Facts, parts: _Parts) -> dict[str, Tensor]:
    """Returns whole weights by name. Raises TransferError: they are damaged."""
    new = {name: parts.read(name) for name in parts.names}
    if any(weight.dtype != torch.bfloat16 for weight in new.values()):
        raise TransferError("its weights are not in bfloat16")
    if whole(new) != facts.whole:
        raise TransferError("its weights have another hash than it says: it was damaged on its way")
    return new


class _Parts:
    """The tensors of an opened file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.names = frozenset(file.keys())

    def read(self, name: str) -> Tensor:
        tensor: Tensor = self._file.get_tensor(name)
        return tensor

    def changes(self, name: str, size: int) -> Any:
        wanted = {part: f"{name}/{part}" for part in delta.PARTS}
        found = {part: self.read(key) for part, key in wanted.items() if key in self.names}
        return delta.read(found, size)


@contextmanager
def _opened(file: Path, most_bytes: int) -> Iterator[tuple[_Facts, _Parts]]:
    """Yields what a file says, and its tensors. A compressed one is unpacked beside it first."""
    plain = file.with_suffix(".plain")
    try:
        with safe_open(plain if _unpack(file, plain, most_bytes) else file, framework="pt") as opened:
            facts = msgspec.json.decode((opened.metadata() or {}).get("codezero", ""), type=_Facts)
            yield facts, _Parts(opened)
    except (SafetensorError, msgspec.MsgspecError, zstandard.ZstdError) as error:
        raise TransferError(f"it is no file of weights, or damaged: {ascii(str(error))[1:-1][:200]}") from error
    finally:
        plain.unlink(missing_ok=True)


def _unpack(file: Path, plain: Path, most_bytes: int) -> bool:
    """Writes a compressed file's content to `plain`; returns False for one that is not compressed."""
    with file.open("rb") as raw:
        if raw.read(len(zstandard.FRAME_HEADER)) != zstandard.FRAME_HEADER:
            return False
        raw.seek(0)
        with zstandard.ZstdDecompressor().stream_reader(raw) as unpacked, plain.open("wb") as out:
            left = most_bytes
            while piece := unpacked.read(min(COPY_BYTES, left + 1)):
                left -= len(piece)
                if left < 0:
                    raise TransferError(f"unpacked it has more than {most_bytes} bytes")
                out.write(piece)
    return True


def _most_bytes(model: Any) -> int:
    """Returns a size that neither all weights nor their difference exceed: at most nine bytes a value."""
    return (16 << 20) + 9 * sum(weight.numel() for _, weight in base_weights(model))
