import gc
import weakref

import pytest
import torch
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

from codezero.llm import decoding, onednn
from codezero.llm import sample as llm_sample
from codezero.llm.draw import SamplingParams, draw
from codezero.llm.sample import sample_groups
from tests.builders import tiny_model
from tests.unit.llm.sampling import PROMPTS, plain_logprobs, sample_request


def sample(model, prompts, num_generations=1, end_ids=(), **settings):
    return sample_groups(model, sample_request(prompts, num_generations, end_ids, **settings))


def uniforms(rows):
    return torch.rand(rows, 1, generator=torch.Generator().manual_seed(0))


def greedy_one_by_one(model, prompt, steps):
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(steps):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return tuple(ids[len(prompt) :])


def test_batched_greedy_decoding_of_ragged_prompts_equals_decoding_each_alone():
    model = tiny_model()
    groups = sample(model, PROMPTS, num_generations=2, temperature=0.0)
    for prompt, group in zip(PROMPTS, groups, strict=True):
        expected = greedy_one_by_one(model, prompt, 8)
        assert [tokens.completion_ids for tokens in group] == [expected, expected]
        assert all(tokens.prompt_ids == tuple(prompt) for tokens in group)


@pytest.fixture
def as_accelerator(monkeypatch):
    """The CPU is taken for a device that computes while the host goes on."""
    monkeypatch.setattr(llm_sample, "IN_STEP", frozenset())


@pytest.mark.usefixtures("as_accelerator")
@pytest.mark.parametrize("steps", [1, 16, 40])
def test_greedy_decoding_in_tensors_of_fixed_shapes_equals_decoding_each_alone(steps):
    model = tiny_model()
    groups = sample(model, PROMPTS, num_generations=2, temperature=0.0, max_new_tokens=steps)
    for prompt, group in zip(PROMPTS, groups, strict=True):
        assert [tokens.completion_ids for tokens in group] == [greedy_one_by_one(model, prompt, steps)] * 2


@pytest.mark.usefixtures("as_accelerator")
def test_an_accelerators_cache_goes_with_the_last_token(monkeypatch):
    """And not when Python next looks for cycles: learning wants its memory."""
    made, fixed = [], decoding.fixed

    def seen(*given):
        cache = fixed(*given)
        made.append(weakref.ref(cache))
        return cache

    monkeypatch.setattr(decoding, "fixed", seen)
    gc.disable()
    try:
        sample(tiny_model(), PROMPTS)
        assert [one() for one in made] == [None]
    finally:
        gc.enable()


@pytest.mark.usefixtures("as_accelerator")
@pytest.mark.parametrize("shape", [{}, {"num_key_value_heads": 4}, {"attn_implementation": "eager"}])
def test_an_accelerator_draws_what_a_cpu_draws_while_rows_end(shape, monkeypatch):
    monkeypatch.setattr(llm_sample, "FEW_ROWS", 8)
    monkeypatch.setattr(llm_sample, "PROMPT_TOKENS", 14)  # two prompts of seven tokens, and the third one
    model, ends = tiny_model(**shape), list(range(0, 259, 32))
    rows = []
    with model.register_forward_pre_hook(
        lambda _, args, kwargs: rows.append(kwargs["input_ids"].shape[0]), with_kwargs=True
    ):
        found = sample(model, PROMPTS, 8, ends, max_new_tokens=60)
    assert_logprobs(model, found, 1.0)
    assert len(set(rows)) > 2  # the prompts, all attempts, fewer
    monkeypatch.undo()
    drawn = sample(model, PROMPTS, 8, ends, max_new_tokens=60)
    assert [[x.completion_ids for x in group] for group in found] == [[x.completion_ids for x in g] for g in drawn]


def assert_logprobs(model, groups, temperature):
    """They are those of a plain forward."""
    for tokens in (tokens for group in groups for tokens in group):
        assert torch.allclose(torch.tensor(tokens.logprobs), plain_logprobs(model, tokens, temperature), atol=1e-5)


def test_logprobs_are_those_of_a_plain_forward_at_the_sampling_temperature():
    model = tiny_model()
    assert_logprobs(model, sample(model, PROMPTS, num_generations=3, temperature=0.7), 0.7)


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"num_key_value_heads": 4},
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
        {"attn_implementation": "eager"},
    ],
)
def test_logprobs_stay_the_models_while_the_cache_grows_and_rows_leave_it(shape, monkeypatch):
    monkeypatch.setattr(decoding, "ROOM", 3)
    model = tiny_model(**shape)
    way = model.config._attn_implementation
    groups = sample(model, PROMPTS, 4, end_ids=list(range(0, 259, 16)), max_new_tokens=30)
    assert len({len(tokens.completion_ids) for group in groups for tokens in group}) > 6
    assert_logprobs(model, groups, 1.0)
    assert model.config._attn_implementation == way


@pytest.mark.parametrize("in_step", [{"cpu"}, set()], ids=["a CPU", "an accelerator"])
def test_values_may_be_of_another_size_than_keys(in_step, monkeypatch):
    """As with the latent attention of DeepSeek-V3."""
    monkeypatch.setattr(llm_sample, "IN_STEP", in_step)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "moe_intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 8}
    sizes = {"qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 8}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
    model = DeepseekV3ForCausalLM(DeepseekV3Config(vocab_size=259, **shape, **heads, **sizes, **experts)).eval()
    assert_logprobs(model, sample(model, PROMPTS, 4, end_ids=list(range(0, 259, 16)), max_new_tokens=30), 1.0)


def test_attention_is_as_before_when_sampling_has_failed():
    def failing(*_):
        raise ZeroDivisionError

    model = tiny_model()
    with pytest.raises(ZeroDivisionError):
        sample(model, PROMPTS, on_step=failing)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rows_that_end_early_do_not_change_the_others(temperature):
    model = tiny_model()
    full = [t.completion_ids for group in sample(model, PROMPTS, 2, temperature=temperature) for t in group]
    end_id = full[0][2]
    ended = [t for group in sample(model, PROMPTS, 2, [end_id], temperature=temperature) for t in group]
    for whole, tokens in zip(full, ended, strict=True):
        cut = whole.index(end_id) + 1 if end_id in whole else len(whole)
        assert tokens.completion_ids == whole[:cut]


def test_a_cpu_reads_each_prompt_once_and_without_padding():
    model = tiny_model()
    rows = []
    model.register_forward_pre_hook(
        lambda _, args, kwargs: rows.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    sample(model, PROMPTS, num_generations=4, max_new_tokens=3)
    assert rows == [(1, 4), (1, 2), (1, 7), (12, 1), (12, 1)]


def test_the_common_beginning_of_prompts_is_read_once():
    model = tiny_model()
    prompts = [[1, 2, 3, *prompt] for prompt in PROMPTS] + [[1, 2, 3]]
    rows = []
    with model.register_forward_pre_hook(
        lambda _, args, kwargs: rows.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    ):
        groups = sample(model, prompts, num_generations=2, max_new_tokens=3, temperature=0.0)
    assert rows == [2, 5, 3, 8, 1, 1, 1]  # at least a token of each is left, for its logits
    for prompt, (first, _) in zip(prompts, groups, strict=True):
        assert first.completion_ids == greedy_one_by_one(model, prompt, 3)


@pytest.mark.parametrize(
    ("params", "possible"),
    [({"top_k": 1}, {2}), ({"top_k": 2}, {2, 3}), ({"top_p": 0.5}, {2}), ({"top_p": 0.7}, {2, 3}), ({}, {0, 1, 2, 3})],
)
def test_top_k_and_top_p_keep_only_the_likeliest_tokens(params, possible):
    logits = torch.tensor([[0.1, 0.1, 0.6, 0.2]]).log().expand(2000, 4)
    tokens, logprobs = draw(logits, SamplingParams(max_new_tokens=1, **params), uniforms(2000))
    assert set(tokens.tolist()) == possible
    assert logprobs[tokens == 2][0].exp() == pytest.approx(0.6)


MANY = torch.linspace(0, 1, 1000) ** 8
MANY[100:400] = MANY[-1] = 0


@pytest.mark.parametrize("weights", [torch.tensor([0.05, 0.25, 0.0, 0.7]), MANY], ids=["a block", "many, the last cut"])
def test_drawn_frequencies_follow_the_probabilities_and_masked_ids_are_never_drawn(weights):
    probs = weights / weights.sum()
    tokens, logprobs = draw(probs.log().expand(40_000, -1), SamplingParams(max_new_tokens=1), uniforms(40_000))
    assert (probs[tokens] > 0).all()
    torch.testing.assert_close(logprobs, probs.log()[tokens])
    cdf, drawn = probs.cumsum(0), torch.bincount(tokens, minlength=len(probs)).cumsum(0) / len(tokens)
    assert (cdf - drawn).abs().max() < 0.01  # Kolmogorov-Smirnov: in one of a thousand tests


@pytest.mark.skipif(not onednn.is_available(), reason="no oneDNN linears on this processor")
def test_decoding_with_packed_weights_samples_the_same_tokens():
    plain, routed = tiny_model(), tiny_model()
    onednn.route_linears(routed)
    assert isinstance(routed.lm_head.forward, onednn.OneDnnForward)
    assert [[t.completion_ids for t in g] for g in sample(plain, PROMPTS, 2)] == [
        [t.completion_ids for t in g] for g in sample(routed, PROMPTS, 2)
    ]
