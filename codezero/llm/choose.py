"""The probability of each of a few next tokens: a question answered in one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


@torch.no_grad()
def choice_probabilities(
    model: Any, prompts: Sequence[Sequence[int]], choices: Sequence[int], *, pad_id: int
) -> list[tuple[float, ...]]:
    """For each prompt of ids, the probabilities of the `choices` as its next token, normalised to sum to 1."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.full((len(prompts), width), pad_id, device=model.device)  # [B, T], left-padded
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt, device=model.device)
        mask[row, width - len(prompt) :] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    output = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=1)
    picked = output.logits[:, -1, list(choices)].float().softmax(-1)  # [B, choices]
    return [tuple(row) for row in picked.tolist()]
