"""One forward pass over answers to a prompt: how likely the model finds each, and what it would say next about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from codezero.llm.logprobs import CHUNK_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedAnswer:
    """A continuation of the prompt: the answer itself, and what follows it up to the next word to choose."""

    ids: Sequence[int]
    """[C], at least one."""
    then: Sequence[int] = ()
    """Ids between the answer and the choice, such as a question about it."""


@torch.no_grad()
def review_answers(
    model: Any, prompt: Sequence[int], answers: Sequence[ReviewedAnswer], choices: Sequence[int], *, pad_id: int
) -> list[tuple[list[float], list[float]]]:
    """For each answer the log-probabilities of its tokens [C], and those of the `choices` as the token after `then`.

    The prompt [P ids, at least one] is run once for all answers, which share one batch. Logits exist for a few hundred
    tokens at a time: those of a peer's longest answer would take more memory than the model.
    """
    shared, last = list(prompt[:-1]), prompt[-1]
    cache = DynamicCache(config=model.config)
    if shared:
        model.base_model(input_ids=torch.tensor([shared], device=model.device), past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(answers))
    rows = [[last, *answer.ids, *answer.then] for answer in answers]
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad_id, device=model.device)  # [B, T], right-padded
    real = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row, device=model.device)
        real[i, : len(row)] = 1
    hidden = model.base_model(
        input_ids=ids,
        attention_mask=torch.cat([real.new_ones(len(rows), len(shared)), real], dim=1),
        position_ids=(len(shared) + torch.arange(width, device=model.device)).expand(len(rows), width),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state  # [B, T, H]
    found = []
    for i, (answer, row) in enumerate(zip(answers, rows, strict=True)):
        of_answer: list[float] = []
        for start in range(0, len(answer.ids), CHUNK_TOKENS):
            part = list(answer.ids[start : start + CHUNK_TOKENS])
            states = hidden[i, start : start + len(part)]
            of_answer += _logprobs(model, states)[torch.arange(len(part)), part].tolist()
        found.append((of_answer, _of_choices(model, hidden[i, len(row) - 1], choices).tolist()))
    return found


def _of_choices(model: Any, hidden: Tensor, choices: Sequence[int]) -> Tensor:
    """[choices] in float32 from the hidden state [H]. A bfloat16 model's own logits are multiples of 1/8 where they are
    over 16, which is as much as its choice between Yes and No differs from solution to solution."""
    head = model.get_output_embeddings()
    exact: Tensor = head.weight[list(choices)].float() @ hidden.float()
    whole: Tensor = head(hidden).float().logsumexp(-1)
    return exact - whole


def _logprobs(model: Any, hidden: Tensor) -> Tensor:
    """[N, vocabulary] in float32."""
    logits: Tensor = model.get_output_embeddings()(hidden).float()
    return logits.log_softmax(-1)
