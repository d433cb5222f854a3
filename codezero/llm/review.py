"""Scores answers to a prompt in one forward pass: their log-probabilities, and those of a next word after each."""

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
    """A continuation of the prompt: the answer, and the texts before it and between it and the word to choose."""

    before: Sequence[int] = ()
    """The token ids between the shared prompt and the answer: the rest of the answer's own prompt."""
    ids: Sequence[int]
    """The answer's token ids, [C] with C >= 1."""
    then: Sequence[int] = ()
    """The token ids between the answer and the choice, such as a question about the answer."""


@torch.no_grad()
def review_answers(
    model: Any, prompt: Sequence[int], answers: Sequence[ReviewedAnswer], choices: Sequence[int], *, pad_id: int
) -> list[tuple[list[float], list[float]]]:
    """Returns for each answer the log-probabilities of its tokens [C], and of the `choices` as the token after `then`.

    The prompt (at least one id) is run once for all answers, which share one batch. Logits are computed for a few
    hundred tokens at a time: those of a peer's longest answer would take more memory than the model.
    """
    shared, last = list(prompt[:-1]), prompt[-1]
    cache = DynamicCache(config=model.config)
    if shared:
        model.base_model(input_ids=torch.tensor([shared], device=model.device), past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(answers))
    rows = [[last, *answer.before, *answer.ids, *answer.then] for answer in answers]
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
            states = hidden[i, len(answer.before) + start :][: len(part)]
            of_answer += _logprobs(model, states)[torch.arange(len(part)), part].tolist()
        found.append((of_answer, _of_choices(model, hidden[i, len(row) - 1], choices).tolist()))
    return found


def _of_choices(model: Any, hidden: Tensor, choices: Sequence[int]) -> Tensor:
    """Returns the log-probabilities of the choices in float32 from the hidden state [H]. A bfloat16 model's own logits
    above 16 are multiples of 1/8, a step as large as the differences of Yes and No between solutions."""
    head = model.get_output_embeddings()
    exact: Tensor = head.weight[list(choices)].float() @ hidden.float()
    whole: Tensor = head(hidden).float().logsumexp(-1)
    return exact - whole


def _logprobs(model: Any, hidden: Tensor) -> Tensor:
    """Returns the log-probabilities [N, vocabulary] in float32 from hidden states [N, H]."""
    logits: Tensor = model.get_output_embeddings()(hidden).float()
    return logits.log_softmax(-1)
