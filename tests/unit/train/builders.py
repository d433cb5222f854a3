"""An encoder whose every prompt is the same, and what learns and computes with it."""

from __future__ import annotations

import torch

from codezero.config import TrainConfig
from codezero.train.batch import TextEncoder
from codezero.train.learner import GrpoLearner
from codezero.train.passes import PolicyPasses
from tests.builders import tiny_tokenizer

END = 256
"""The id that ends an answer of the tiny tokenizer."""


def text_encoder(prompt_ids=(1, 2, 3), **changes) -> TextEncoder:
    """Gives each task this prompt."""
    fields = {
        "tokenizer": tiny_tokenizer(),
        "encode_prompt": lambda task: prompt_ids,
        "end_token_id": END,
        "max_prompt_length": 16,
        "max_completion_length": 8,
    }
    return TextEncoder(**{**fields, **changes})


def grpo_learner(model, config: TrainConfig, encoder: TextEncoder | None = None, **more) -> GrpoLearner:
    encoder = encoder or text_encoder()
    return GrpoLearner(
        model, encoder, config, temperature=1.0, max_completion_length=encoder.max_completion_length, **more
    )


def policy_passes(model, config: TrainConfig, **changes) -> PolicyPasses:
    settings = {"temperature": 1.0, "max_completion_length": 8, "reference_model": None, "progress": lambda *_: None}
    return PolicyPasses(model, config, **{**settings, **changes})


def flat_gradient(model) -> torch.Tensor:
    """The gradients of all parameters, one after the other."""
    return torch.cat([p.grad.flatten() for p in model.parameters()])
