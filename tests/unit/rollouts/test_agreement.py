"""The log-probs that a node takes for those of the weights that a rollout server was sent."""

import copy

import pytest
import torch

from codezero.llm.logprobs import CompletionScorer
from codezero.rollouts.agreement import disagrees
from codezero.types import SampledTokens
from tests.builders import tiny_model

PROMPT, TEXT = [1, 2, 3], [97, 98, 99, 100, 101, 102, 103, 256]


def learn(model, text, steps, rate):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    ids = torch.tensor([[*PROMPT, *text]])
    for _ in range(steps):
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture(scope="module")
def model():
    """It is nearly certain of the text, as a policy is of most of its tokens."""
    made = tiny_model()
    learn(made, TEXT, 30, 1e-2)
    return made


def attempt(model, change=lambda logprobs: logprobs):
    """The text with the log-probs that the model has, changed."""
    ids = torch.tensor([TEXT])
    with torch.no_grad():
        own = CompletionScorer(model, torch.tensor(PROMPT)).logprobs(ids, torch.ones_like(ids).bool())[0].tolist()
    return SampledTokens(prompt_ids=tuple(PROMPT), completion_ids=tuple(TEXT), logprobs=tuple(change(own)))


LIES = {
    "certainty": lambda logprobs: [0.0] * len(logprobs),
    "one nat lower": lambda logprobs: [one - 1.0 for one in logprobs],
    "reversed": lambda logprobs: logprobs[::-1],
}


@pytest.mark.parametrize("is_stale", [False, True])
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_lies_are_refused_of_present_and_of_earlier_weights(model, lie, is_stale):
    assert "not those of this node's weights" in disagrees(model, attempt(model, lie), 1.0, is_stale=is_stale)


def test_attempts_of_the_present_weights_and_of_earlier_ones_are_taken(model):
    assert disagrees(model, attempt(model), 1.0, is_stale=False) == ""
    newer = copy.deepcopy(model)
    for _ in range(2):
        learn(newer, TEXT[::-1], 1, 1e-4)
        assert disagrees(newer, attempt(model), 1.0, is_stale=True) == ""
        assert attempt(newer) != attempt(model)
