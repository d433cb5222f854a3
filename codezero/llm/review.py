"""Scores answers to a prompt in one forward pass: their log-probabilities, and those of a next word after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from codezero.llm.choose import choice_logits
from codezero.llm.logprobs import CHUNK_TOKENS
from codezero.llm.padding import padded


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedAnswer:
    """An answer to a prompt, and the text between it and the word to choose."""

    prompt: tuple[int, ...]
    """The prompt's token ids, at least one."""
    ids: Sequence[int]
    """The answer's token ids, [C] with C >= 1."""
    then: Sequence[int] = ()
    """The token ids between the answer and the choice, such as a question about the answer."""

    def __len__(self) -> int:
        return len(self.prompt) + len(self.ids) + len(self.then)


@torch.no_grad()
def review_answers(
    model: Any, answers: Sequence[ReviewedAnswer], choices: Sequence[int], *, pad_id: int
) -> list[tuple[list[float], list[float]]]:
    """Returns for each answer the log-probabilities of its tokens [C], and of the `choices` as the token after `then`.

    The distinct prompts are one batch, of which each is run once, and all answers another. Logits are computed for a
    few hundred tokens at a time: those of a peer's longest answer would take more memory than the model.
    """
    prompts = list(dict.fromkeys(answer.prompt[:-1] for answer in answers))
    cache = DynamicCache(config=model.config)
    shared, is_shared = padded(prompts, pad_id, model.device)  # [P, S]
    of_answer = torch.tensor([prompts.index(answer.prompt[:-1]) for answer in answers], device=model.device)
    if shared.shape[1]:
        mask = is_shared if len(prompts) > 1 else None
        model.base_model(input_ids=shared, attention_mask=mask, past_key_values=cache, use_cache=True)
        cache.batch_select_indices(of_answer)
    rows = [[answer.prompt[-1], *answer.ids, *answer.then] for answer in answers]
    ids, real = padded(rows, pad_id, model.device)  # [B, T]
    starts = is_shared.sum(dim=1, keepdim=True)[of_answer]
    hidden = model.base_model(
        input_ids=ids,
        attention_mask=torch.cat([is_shared[of_answer], real], dim=1),
        position_ids=starts + torch.arange(ids.shape[1], device=model.device),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state  # [B, T, H]
    found = []
    for i, (answer, row) in enumerate(zip(answers, rows, strict=True)):
        of_tokens: list[float] = []
        for start in range(0, len(answer.ids), CHUNK_TOKENS):
            part = list(answer.ids[start : start + CHUNK_TOKENS])
            states = hidden[i, start:][: len(part)]
            of_tokens += _logprobs(model, states)[torch.arange(len(part)), part].tolist()
        found.append((of_tokens, _of_choices(model, hidden[i, len(row) - 1], choices).tolist()))
    return found


def _of_choices(model: Any, hidden: Tensor, choices: Sequence[int]) -> Tensor:
    """Returns the log-probabilities of the choices in float32 from the hidden state [H]."""
    whole: Tensor = model.get_output_embeddings()(hidden).float().logsumexp(-1)
    return choice_logits(model, hidden, choices) - whole


def _logprobs(model: Any, hidden: Tensor) -> Tensor:
    """Returns the log-probabilities [N, vocabulary] in float32 from hidden states [N, H]."""
    logits: Tensor = model.get_output_embeddings()(hidden).float()
    return logits.log_softmax(-1)
