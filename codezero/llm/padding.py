"""Rows of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


def padded(
    rows: Sequence[Sequence[int]], pad_id: int, device: torch.device | None = None, *, left: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns rows of ids as one tensor [B, T], filled up with `pad_id` on the right or the left, and a mask [B, T], 1
    at ids and 0 at padding, since the padding id may be a token too."""
    return filled(rows, pad_id, left=left).to(device), filled([[1] * len(row) for row in rows], 0, left=left).to(device)


def filled(
    rows: Sequence[Sequence[float]], value: float, dtype: torch.dtype = torch.long, *, left: bool = False
) -> Tensor:
    """Returns rows of numbers as one tensor [B, T], filled up with `value` on the right or the left."""
    tensors = [torch.tensor(row, dtype=dtype) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side="left" if left else "right")
