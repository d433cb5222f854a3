"""Attention of a decoding step that copies neither the cache nor, for each query head, its keys and values.

transformers' cache is copied whole for each token, and with a mask its keys and values are repeated for all the query
heads that share them: seven times for Qwen2.5 0.5B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, Cache, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from codezero.llm.logprobs import has_plain_cache

ROOM = 64
"""The number of tokens that a cache without room left is made longer by."""
_NAME = "codezero_grouped"


class _GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """The cache of a layer, in tensors with room for more tokens."""

    keys: Tensor
    values: Tensor

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._room: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self._room is None or end > self._room[0].shape[-2]:
            self._room = self._made(key_states, end), self._made(value_states, end)
            if start:
                self._room[0][:, :, :start], self._room[1][:, :, :start] = self.keys, self.values
        keys, values = self._room
        keys[:, :, start:end], values[:, :, start:end] = key_states, value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def _made(self, states: Tensor, end: int) -> Tensor:
        rows, heads, _, size = states.shape  # latent attention has values of another size than keys
        return states.new_empty(rows, heads, min(end + ROOM, self._most), size)

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        self._room = None

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)
        self._room = None


class _FixedLayer(DynamicLayer):  # type: ignore[misc]
    """The cache of a layer in tensors that stay where they are, of which attention always reads the whole. A step adds
    one token to each row, at a place that all layers share."""

    keys: Tensor
    values: Tensor

    def __init__(self, keys: Tensor, values: Tensor, most: int, place: Tensor) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        # Zeros: attention multiplies by 0 what a mask hides, and 0 times NaN is NaN.
        self.keys, self.values = (nn.functional.pad(x, (0, 0, 0, most - x.shape[-2])) for x in (keys, values))
        self._place = place

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        self.keys.index_copy_(2, self._place, key_states)
        self.values.index_copy_(2, self._place, value_states)
        return self.keys, self.values


def make_cache(model: Any, most: int) -> Cache:
    """Returns an empty cache for at most so many tokens a row."""
    if not has_plain_cache(model):
        return DynamicCache(config=model.config)
    return Cache(layers=[_GrowingLayer(most) for _ in range(model.config.num_hidden_layers)])


def copied(cache: Cache, most: int) -> Cache:
    """Returns a copy of a cache of plain layers (`make_cache`), for at most so many tokens a row."""
    layers = [_GrowingLayer(most) for _ in cache.layers]
    for layer, old in zip(layers, cache.layers, strict=True):
        if old.get_seq_length():
            layer.update(old.keys, old.values)
    return Cache(layers=layers)


def fixed(cache: Cache, most: int, place: Tensor) -> Cache:
    """Turns a cache of plain layers (`make_cache`) into one with room for so many tokens a row; the next one comes to
    `place` [1], which the caller moves on."""
    layers = []
    while cache.layers:  # a layer at a time, since memory holds no second cache
        layer = cache.layers.pop(0)
        layers.append(_FixedLayer(layer.keys, layer.values, most, place))
    return Cache(layers=layers)


def left_padded(caches: Sequence[Cache], most: int) -> Cache:
    """Turns several caches (`make_cache`, of plain layers) into one, for at most so many tokens a row. All rows end at
    the same place; zeros are before the shorter ones."""
    width = max(cache.get_seq_length() for cache in caches)

    def padded(parts: Iterable[Tensor]) -> Tensor:
        return torch.cat([nn.functional.pad(part, (0, 0, width - part.shape[-2], 0)) for part in parts])

    layers = []
    while caches[0].layers:  # a layer at a time, since memory holds no second cache
        rows = [cache.layers.pop(0) for cache in caches]
        layers.append(_GrowingLayer(most))
        layers[-1].update(padded(row.keys for row in rows), padded(row.values for row in rows))
    return Cache(layers=layers)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Computes scaled dot-product attention. For one new token [B, heads, 1, size], the query heads that share a key
    head become its queries, since the same mask holds for all of them."""
    rows, heads, length, size = query.shape
    if length > 1:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)  # type: ignore[no-any-return]
    found = nn.functional.scaled_dot_product_attention(
        query.reshape(rows, key.shape[1], -1, size), key, value, attn_mask=attention_mask, scale=options.get("scaling")
    )
    return found.reshape(rows, 1, heads, -1), None


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)


@contextmanager
def grouped_queries(model: Any) -> Iterator[None]:
    """Decodes with `_attention` in the context, if the model's attention is torch's."""
    config = model.config
    if config._attn_implementation != "sdpa":
        yield
        return
    config._attn_implementation = _NAME
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"
