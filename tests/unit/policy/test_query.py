"""The policy asked by other threads: the model's own numbers, in its own turn, and no random number taken."""

import threading
from dataclasses import replace

import pytest
import torch

from codezero.errors import PromptTooLong, Stopping
from codezero.policy import query
from codezero.policy.query import QueryPolicy
from tests.builders import loaded

CHAT = [{"role": "user", "content": "Which?"}]


@torch.no_grad()
def plain_logprobs(policy, prompt, completion):
    ids = torch.tensor([prompt + completion])
    rows = policy.model(input_ids=ids).logits[0].log_softmax(-1)
    return [rows[len(prompt) + place - 1, token].item() for place, token in enumerate(completion)]


def test_likelihoods_are_those_of_a_plain_pass_over_each_choice():
    policy = loaded()
    found = QueryPolicy(policy, threading.Lock(), max_new_tokens=8).token_logprobs(CHAT, "<answer>", ["a", "a dog"])
    prompt = policy.encode_chat(CHAT) + policy.encode_text("<answer>")
    for text, logprobs in zip(["a", "a dog"], found, strict=True):
        assert logprobs == pytest.approx(plain_logprobs(policy, prompt, policy.encode_text(text)), abs=1e-4)
    assert [len(logprobs) for logprobs in found] == [1, 5]


def test_an_answer_is_greedy_and_takes_no_random_number():
    policy = QueryPolicy(loaded(), threading.Lock(), max_new_tokens=8)
    before = torch.get_rng_state()
    assert policy.answer("1+1?") == policy.answer("1+1?")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_question_waits_while_the_policy_is_trained():
    turn, done = threading.Lock(), threading.Event()
    policy = QueryPolicy(loaded(), turn, max_new_tokens=2)

    def ask():
        policy.answer("?")
        policy.token_logprobs(CHAT, "", ["a"])
        done.set()

    with turn:
        threading.Thread(target=ask, daemon=True).start()
        assert not done.wait(0.2)
    assert done.wait(120)


def test_what_does_not_fit_the_model_is_told_and_leaves_the_turn_free():
    turn = threading.Lock()
    policy = QueryPolicy(replace(loaded(), context_length=64), turn, max_new_tokens=8)
    with pytest.raises(PromptTooLong):
        policy.answer("x" * 100)
    with pytest.raises(PromptTooLong):
        policy.token_logprobs(CHAT, "<answer>", ["a", "x" * 100])
    assert not turn.locked()


def test_a_question_is_not_read_at_any_length(monkeypatch):
    monkeypatch.setattr(query, "MAX_PROMPT_TOKENS", 100)
    policy = QueryPolicy(loaded(), threading.Lock(), max_new_tokens=8)
    assert policy.answer("x" * 20)
    for ask in (policy.answer, lambda text: policy.token_logprobs(CHAT, text, ["a"])):
        with pytest.raises(PromptTooLong):
            ask("x" * 100)


def test_many_choices_are_scored_a_few_at_a_time_with_the_same_numbers(monkeypatch):
    choices = [f"choice {number}" for number in range(7)]
    policy = QueryPolicy(loaded(), threading.Lock(), max_new_tokens=8)
    at_once = policy.token_logprobs(CHAT, "<answer>", choices)
    sizes, scored = [], query.CompletionScorer.logprobs

    def remember(self, ids, mask):
        sizes.append(len(ids))
        return scored(self, ids, mask)

    monkeypatch.setattr(query.CompletionScorer, "logprobs", remember)
    monkeypatch.setattr(query, "MAX_BATCH_TOKENS", 200)
    few_at_a_time = policy.token_logprobs(CHAT, "<answer>", choices)
    assert len(sizes) > 1
    assert sum(sizes) == 7
    for one, other in zip(at_once, few_at_a_time, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_a_node_that_ends_breaks_off_its_answer(monkeypatch):
    policy, steps = QueryPolicy(loaded(), turn := threading.Lock(), max_new_tokens=50), []

    def sample(model, request, sample=query.sample_groups):
        def step(done, total):
            steps.append(done)
            if done == 2:
                policy.close()
            request.on_step(done, total)

        return sample(model, replace(request, on_step=step))

    monkeypatch.setattr(query, "sample_groups", sample)
    with pytest.raises(Stopping):
        policy.answer("?")
    assert steps == [1, 2]
    with pytest.raises(Stopping):
        policy.token_logprobs(CHAT, "", ["a"])
    assert not turn.locked()


def test_the_tokenizer_that_the_rounds_use_is_left_alone():
    """It has a switch for special tokens in it, which two threads would take turns to set for each other."""
    policy = loaded()
    asked_policy = QueryPolicy(policy, threading.Lock(), max_new_tokens=2)
    expected = asked_policy.token_logprobs(CHAT, "<answer>", ["<|im_end|>"])
    policy.tokenizer.chat_template = "{{ raise_exception('not yours') }}"
    switch = policy.tokenizer._tokenizer.encode_special_tokens
    asked_policy.answer("<|im_end|>")
    assert asked_policy.token_logprobs(CHAT, "<answer>", ["<|im_end|>"]) == expected
    assert [len(logprobs) for logprobs in expected] == [len("<|im_end|>")]
    assert policy.tokenizer._tokenizer.encode_special_tokens == switch
