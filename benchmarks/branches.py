"""Texts that begin alike, put to a model: what they have in common is run once."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from codezero.llm.load import LoadedModel
from codezero.llm.sample import num_common


class Stem:
    """The beginning of texts, of one token at least. All of it but the last token, with which a branch starts, is run
    and kept."""

    @torch.no_grad()
    def __init__(self, model: LoadedModel, ids: Sequence[int], before: Stem | None = None) -> None:
        """`before` is the stem that this one begins with."""
        self._model, self.ids = model, list(ids)
        self._num_before = len(before.ids) if before else 1
        self._cache = copy.deepcopy(before._cache) if before else DynamicCache(config=model.model.config)
        self._hidden = _states(model, [self.ids[self._num_before - 1 if before else 0 : -1]], self._cache)[0]

    def grown(self, ids: Sequence[int]) -> Stem:
        """A longer stem: this one and further ids."""
        return Stem(self._model, [*self.ids, *ids], before=self)

    @property
    def logprobs(self) -> np.ndarray:
        """[C] of the ids that were added to the stem before; without one, of all but the first."""
        return _logprobs(self._model, self._hidden, self.ids[self._num_before :])

    @torch.no_grad()
    def branches(self, texts: Sequence[Sequence[int]]) -> list[tuple[np.ndarray, Tensor]]:
        """For each continuation the log-probabilities of its ids [C], and those of the id that would follow [V]."""
        cache = copy.deepcopy(self._cache)
        if len(self.ids) > 1:
            cache.batch_repeat_interleave(len(texts))
        states = _states(self._model, [[self.ids[-1], *text] for text in texts], cache)
        return [
            (_logprobs(self._model, row[: len(text)], text), _head(self._model, row[len(text)]))
            for row, text in zip(states, texts, strict=True)
        ]


def common_prefix(texts: Sequence[Sequence[int]]) -> list[int]:
    """What all begin with, of which each has at least one more id."""
    return list(texts[0][: num_common(texts)])


def _states(model: LoadedModel, rows: Sequence[Sequence[int]], cache: DynamicCache) -> Tensor:
    """Last hidden states [B, T, H] of rows that continue the cache, padded on the right, where nothing real looks."""
    width = max(len(row) for row in rows)
    device = model.model.device
    if width == 0:
        return torch.empty(len(rows), 0, model.model.config.hidden_size, device=device)
    ids = torch.full((len(rows), width), model.pad_id, device=device)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row, device=device)
    states: Tensor = model.model.base_model(input_ids=ids, past_key_values=cache, use_cache=True).last_hidden_state
    return states


@torch.no_grad()
def _logprobs(model: LoadedModel, states: Tensor, ids: Sequence[int]) -> np.ndarray:
    found: np.ndarray = _head(model, states)[torch.arange(len(ids)), list(ids)].cpu().numpy()
    return found


def _head(model: LoadedModel, states: Tensor) -> Tensor:
    logits: Tensor = model.model.get_output_embeddings()(states).float()
    return logits.log_softmax(-1)
