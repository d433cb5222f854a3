"""Checks that a rollout server samples tokens of the model, from the weights that it was sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from codezero.llm.logprobs import CompletionScorer
from codezero.train.agreement import measure
from codezero.types import SampledTokens

MOST_GAP, MOST_STALE_GAP = 0.1, 1.0
"""The largest median of |difference| of log-probs in an attempt, in nats: with the present weights, with earlier ones.
Log-probs of one model in float32 and in bfloat16 differ by a hundredth of the former, those of unrelated ones by more
than the latter; how much updates change is a matter of the learning rate."""


def foreign(model: Any, attempts: Iterable[SampledTokens]) -> str:
    """Returns in words what is wrong if the model does not have all tokens of the attempts; empty if it has."""
    vocabulary = model.config.get_text_config().vocab_size
    if all(max(attempt.completion_ids) < vocabulary for attempt in attempts):
        return ""
    return f"it sent token ids from {vocabulary} on, which the model does not have"


@torch.no_grad()
def disagrees(model: Any, attempt: SampledTokens, temperature: float, *, is_stale: bool) -> str:
    """Returns in words what is wrong if the log-probs of an attempt are not the model's; empty if they are."""
    scorer = CompletionScorer(model, torch.tensor(attempt.prompt_ids, device=model.device))
    ids = torch.tensor([attempt.completion_ids], device=model.device)
    own = scorer.logprobs(ids, torch.ones_like(ids, dtype=torch.bool), temperature or 1.0)[0].float().cpu()
    found = measure(own - torch.tensor(attempt.logprobs))
    assert found is not None
    if found.median_gap <= (MOST_STALE_GAP if is_stale else MOST_GAP):
        return ""
    return (
        f"its log-probs are not those of this node's weights: half of {len(attempt.logprobs)} tokens differ by more "
        f"than {found.median_gap:.2f} nats"
    )
