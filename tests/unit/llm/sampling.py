"""Requests to samplers, and the log-probabilities that they should find."""

from __future__ import annotations

import torch

from codezero.llm.draw import SamplingParams
from codezero.llm.sample import SampleRequest

PROMPTS = [[5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15, 16, 17]]


def sample_request(prompts=PROMPTS, num_generations=1, end_ids=(), seed=0, on_step=None, device="cpu", **params):
    return SampleRequest(
        prompts=prompts,
        num_generations=num_generations,
        params=SamplingParams(**{"max_new_tokens": 8, **params}),
        end_ids=end_ids,
        pad_id=257,
        generator=torch.Generator(device).manual_seed(seed),
        on_step=on_step,
    )


@torch.no_grad()
def plain_logprobs(model, tokens, temperature=1.0):
    """Those of a completion by a plain forward pass."""
    ids = torch.tensor([tokens.prompt_ids + tokens.completion_ids])
    logits = model(ids).logits[0, len(tokens.prompt_ids) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(-1, torch.tensor(tokens.completion_ids)[:, None])[:, 0]
