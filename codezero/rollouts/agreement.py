"""Checks that a rollout server samples tokens of the model, from the weights that it was sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from codezero.llm.logprobs import CompletionScorer
from codezero.train.claims import log_ratios
from codezero.types import SampledTokens

MOST_GAP = 0.1
"""The largest median of |difference| of log-probs in an attempt from the present weights, in nats. Log-probs of one
model in float32 and in bfloat16 differ by a hundredth of it. How much updates change is a matter of the learning rate,
so attempts from earlier weights have no such bound."""


def foreign(model: Any, attempts: Iterable[SampledTokens]) -> str:
    """Returns in words what is wrong if the model does not have all tokens of the attempts; empty if it has."""
    vocabulary = model.config.get_text_config().vocab_size
    if all(max(attempt.completion_ids) < vocabulary for attempt in attempts):
        return ""
    return f"it sent token ids from {vocabulary} on, which the model does not have"


@torch.no_grad()
def disagrees(model: Any, attempt: SampledTokens, temperature: float, *, is_stale: bool) -> str:
    """Returns in words what is wrong if the log-probs of an attempt are not the model's; empty if they are. The rule is
    that for peers, with a narrower bound for the present weights, which the server has too."""
    scorer = CompletionScorer(model, torch.tensor(attempt.prompt_ids, device=model.device))
    ids = torch.tensor([attempt.completion_ids], device=model.device)
    own = scorer.logprobs(ids, torch.ones_like(ids, dtype=torch.bool), temperature or 1.0)[0].float().cpu()
    gaps = (own - torch.tensor(attempt.logprobs)).abs()
    is_plausible = log_ratios(attempt.logprobs, own.tolist()) is not None
    if is_plausible and (is_stale or gaps.median() <= MOST_GAP):
        return ""
    mean = gaps.mean().item()
    return f"its log-probs are not those of this node's weights: {len(gaps)} tokens differ by a mean of {mean:.2f} nats"
