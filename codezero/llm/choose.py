"""The probabilities of a few possible next tokens, from one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from codezero.llm.padding import padded
from codezero.llm.sample import num_common


@torch.no_grad()
def choice_probabilities(
    model: Any, prompts: Sequence[Sequence[int]], choices: Sequence[int], *, pad_id: int
) -> list[tuple[float, ...]]:
    """Returns for each prompt of ids the probabilities of the `choices` as its next token, normalised to sum to 1.

    The common beginning of all prompts, such as the problem and tests of several solutions, is run once.
    """
    shared = list(prompts[0][: num_common(prompts)])
    cache = DynamicCache(config=model.config)
    if shared:
        model.base_model(input_ids=torch.tensor([shared], device=model.device), past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(prompts))
    rests = [prompt[len(shared) :] for prompt in prompts]
    ids, real = padded(rests, pad_id, model.device, left=True)
    output = model.base_model(
        input_ids=ids,
        attention_mask=torch.cat([real.new_ones(len(rests), len(shared)), real], dim=1),
        position_ids=len(shared) + (real.cumsum(-1) - 1).clamp(min=0),
        past_key_values=cache,
        use_cache=True,
    )
    picked = choice_logits(model, output.last_hidden_state[:, -1], choices).softmax(-1)  # [B, choices]
    return [tuple(row) for row in picked.tolist()]


def choice_logits(model: Any, hidden: Tensor, choices: Sequence[int]) -> Tensor:
    """Returns the logits of the choices [..., choices] in float32 from hidden states [..., H]. A bfloat16 model's own
    logits above 16 are multiples of 1/8, a step as large as the differences of Yes and No between solutions."""
    logits: Tensor = hidden.float() @ model.get_output_embeddings().weight[list(choices)].float().T
    return logits
