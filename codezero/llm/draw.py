"""Draws a token from the logits of each row of a batch, with temperature, top-k and top-p."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 128
"""The number of ids in a block of `_inverse_cdf`."""
BELOW_1 = 1 - 2**-24
"""The largest float32 below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """The settings of sampling. The defaults sample from the model's own distribution."""

    max_new_tokens: int
    temperature: float = 1.0
    """The sampling temperature; 0 decodes greedily."""
    top_p: float = 1.0
    top_k: int = 0


def draw(logits: Tensor, params: SamplingParams, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draws one token per row of logits [B, V], with one uniform random number per row [B, 1]. Returns ids [B] and
    their log-probs [B] at the sampling temperature."""
    scaled = logits.float()
    if params.temperature not in (0, 1):
        scaled = scaled / params.temperature
    peaks = scaled.amax(-1, keepdim=True)
    weights = (scaled - peaks).exp_()
    norms = weights.sum(-1, keepdim=True)
    is_greedy = params.temperature == 0
    tokens = scaled.argmax(-1) if is_greedy else _inverse_cdf(_filter(weights, params), uniforms)
    return tokens, (scaled.gather(-1, tokens[:, None]) - peaks - norms.log())[:, 0]


def _filter(weights: Tensor, params: SamplingParams) -> Tensor:
    """Returns unnormalised probabilities [B, V] with all outside the top k and outside the top-p nucleus set to 0."""
    if params.top_k > 0:
        least = weights.topk(min(params.top_k, weights.shape[-1]), dim=-1).values[:, -1:]
        weights = weights.where(weights >= least, 0.0)
    if params.top_p < 1:
        ordered, order = weights.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered  # the mass of likelier tokens: the first is always kept
        outside = before >= params.top_p * ordered.sum(-1, keepdim=True)
        weights = weights.masked_fill(torch.empty_like(outside).scatter_(-1, order, outside), 0.0)
    return weights


def _inverse_cdf(weights: Tensor, uniforms: Tensor) -> Tensor:
    """Draws one id [B] per row of unnormalised probabilities [B, V], first a block of ids and then one of it: without a
    cumulative sum of the whole row, which takes as long as all else, and several times faster than `torch.multinomial`
    on a CPU."""
    if over := weights.shape[-1] % BLOCK:
        weights = torch.nn.functional.pad(weights, (0, BLOCK - over))
    blocks = weights.view(len(weights), -1, BLOCK)
    block, within = _search(blocks.sum(-1), uniforms)
    token, _ = _search(blocks.take_along_dim(block[:, :, None], dim=1)[:, 0], within)
    return (block * BLOCK + token)[:, 0]


def _search(weights: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the places [B, 1] in weights [B, N] at these shares of their sums [B, 1], and the share of each place's
    own weight that is reached there."""
    cdf = weights.cumsum(-1)  # accumulated in double on a CPU
    wanted = uniforms * cdf[:, -1:]
    # right=True: the first place whose cumulative weight exceeds what is wanted, so one of weight 0 is never drawn
    found = torch.searchsorted(cdf, wanted, right=True).clamp(max=weights.shape[-1] - 1)
    own = weights.gather(-1, found)
    return found, ((wanted - cdf.gather(-1, found)) / own + 1).clamp(0, BELOW_1)
