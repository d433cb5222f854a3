"""The difference of two versions of a weight in bfloat16: the new values, and where they are.

About one value in a hundred differs after an update at a learning rate of 1e-6, since bfloat16 has 8 bits for the
digits of a number: most updates are too small to change them (PULSE, arXiv 2602.03839). A position takes a byte, its
distance from the one before; a value two, apart from each other, since the upper bytes compress well.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from codezero.errors import TransferError

FAR = 255
"""The distance, in values, from which on one is written with four bytes, at the end of the tensor's part."""
PARTS = ("gaps", "far", "high", "low")
_KINDS = {"gaps": torch.uint8, "far": torch.int32, "high": torch.uint8, "low": torch.uint8}


def rounded(weight: Tensor) -> Tensor:
    """Returns a copy of the values in bfloat16, on the CPU."""
    return weight.detach().to("cpu", torch.bfloat16, copy=True).contiguous()


def bits(weight: Tensor) -> NDArray[np.uint16]:
    """Returns the bits of a weight that is `rounded`, flat, without copying it."""
    return weight.view(torch.int16).numpy().reshape(-1).view(np.uint16)


def checksum(weight: Tensor) -> int:
    """Returns the CRC-32 of the bits of a weight that is `rounded`."""
    return zlib.crc32(bits(weight).data)


def difference(old: Tensor, new: Tensor) -> dict[str, Tensor]:
    """Returns the `PARTS` of what makes `new` of `old`, both `rounded`; empty if nothing differs."""
    before, after = bits(old), bits(new)
    places = np.flatnonzero(before != after)
    if not len(places):
        return {}
    gaps = np.diff(places, prepend=-1) - 1
    values = after[places]
    found = {
        "gaps": np.minimum(gaps, FAR).astype(np.uint8),
        "far": gaps[gaps >= FAR].astype(np.int32),
        "high": (values >> 8).astype(np.uint8),
        "low": (values & 0xFF).astype(np.uint8),
    }
    return {name: torch.from_numpy(part) for name, part in found.items()}


def read(parts: Mapping[str, Tensor], size: int) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Returns the places and the new bits of a `difference` of a weight with `size` values.

    Raises TransferError: it is not one.
    """
    if parts.keys() != set(PARTS) or any(part.dtype != _KINDS[name] or part.ndim != 1 for name, part in parts.items()):
        raise TransferError("a difference has other parts than places and values")
    arrays: dict[str, NDArray[Any]] = {name: part.numpy() for name, part in parts.items()}
    gaps = arrays["gaps"].astype(np.int64)
    is_far = gaps == FAR
    if not len(gaps) == len(arrays["high"]) == len(arrays["low"]) or len(arrays["far"]) != is_far.sum():
        raise TransferError("a difference has not as many values as places")
    gaps[is_far] = arrays["far"]
    places = np.cumsum(gaps + 1) - 1
    if (gaps < 0).any() or (len(places) and places[-1] >= size):
        raise TransferError(f"a difference has places outside of a weight of {size} values")
    return places, arrays["high"].astype(np.uint16) << 8 | arrays["low"]
