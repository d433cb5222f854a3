"""The scorer against the plain forward pass with full logits, in value and in gradient."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    Cohere2Config,
    Cohere2ForCausalLM,
    GPTJConfig,
    GPTJForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from codezero.errors import ModelError
from codezero.llm import logprobs
from codezero.llm.logprobs import CompletionScorer, require_plain_head
from tests.builders import tiny_model

PROMPT = torch.tensor([5, 9, 200, 31])
COMPLETIONS = torch.tensor([[7, 8, 9, 10, 256], [40, 41, 258, 258, 258], [12, 258, 258, 258, 258]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]], dtype=torch.bool)
WEIGHTS = torch.linspace(-1.0, 2.0, 15).view(3, 5)


def full_logprobs(model, temperature=1.0):
    """The textbook way: every sequence by itself, all logits, log_softmax."""
    out = torch.zeros(3, 5)
    for row in range(3):
        ids = torch.cat([PROMPT, COMPLETIONS[row, : MASK[row].sum()]])
        logits = model(input_ids=ids[None]).logits[0].float() / temperature
        logp = torch.log_softmax(logits, -1)[3:-1].gather(-1, ids[4:, None])[:, 0]
        out = out + torch.nn.functional.pad(logp, (0, 5 - len(logp)))[None] * (torch.arange(3) == row)[:, None]
    return out


def gradients(model):
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def full_gradients(model):
    (full_logprobs(model) * WEIGHTS).sum().backward()
    return gradients(model)


def scorer_gradients(model):
    scorer = CompletionScorer(model, PROMPT)
    (scorer.logprobs(COMPLETIONS, MASK) * WEIGHTS).sum().backward()
    scorer.backward()
    return gradients(model)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        torch.testing.assert_close(found[name], expected[name], atol=2e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("share_prompt", [True, False])
@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize(("temperature", "chunk"), [(1.0, 256), (0.7, 3)])
def test_equals_full_log_softmax_and_its_gradient(monkeypatch, tie, share_prompt, temperature, chunk):
    monkeypatch.setattr(logprobs, "head_chunk", lambda device: chunk)
    model = tiny_model(tie=tie)
    expected = full_logprobs(model, temperature)
    (expected * WEIGHTS).sum().backward()
    wanted = gradients(model)

    scorer = CompletionScorer(model, PROMPT, share_prompt)
    found = scorer.logprobs(COMPLETIONS, MASK, temperature)
    (found * WEIGHTS).sum().backward()
    scorer.backward()

    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert_same(gradients(model), wanted)


def test_completions_of_several_prompts_in_one_batch_equal_each_alone():
    prompts = [torch.tensor(ids) for ids in ([5, 9, 200, 31], [3], [8, 7, 6, 5, 4, 3, 2])]
    alone = tiny_model()
    expected = []
    for row, prompt in enumerate(prompts):
        scorer = CompletionScorer(alone, prompt)
        expected.append(scorer.logprobs(COMPLETIONS[row : row + 1], MASK[row : row + 1], 0.7))
        (expected[-1] * WEIGHTS[row]).sum().backward()
        scorer.backward()

    together = tiny_model()
    padded = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True, padding_value=99)
    lengths = torch.tensor([4, 1, 7])
    found = CompletionScorer(together, padded, lengths=lengths, width=4 + 5).logprobs(COMPLETIONS, MASK, 0.7)
    (found * WEIGHTS).sum().backward()

    torch.testing.assert_close(found, torch.cat(expected), atol=1e-6, rtol=1e-6)
    assert_same(gradients(together), gradients(alone))


def test_micro_batches_of_one_prompt_add_up_to_one_batch():
    model = tiny_model()
    wanted = scorer_gradients(model)
    scorer = CompletionScorer(model, PROMPT)
    for rows in (slice(0, 1), slice(1, 3)):
        (scorer.logprobs(COMPLETIONS[rows], MASK[rows]) * WEIGHTS[rows]).sum().backward()
    scorer.backward()
    assert_same(gradients(model), wanted)


def test_prompt_is_run_once_for_all_micro_batches():
    model = tiny_model()
    lengths = []
    model.base_model.register_forward_hook(
        lambda module, args, kwargs, out: lengths.append(kwargs["inputs_embeds"].shape[1]), with_kwargs=True
    )
    scorer = CompletionScorer(model, PROMPT)
    for row in range(3):
        scorer.logprobs(COMPLETIONS[row : row + 1], MASK[row : row + 1])
    assert lengths == [4, 4, 4, 4]  # the prompt, then 5 - 1 completion tokens each


def test_nothing_of_the_prompt_is_kept_for_gradients_until_they_are_sent_through_it():
    model = tiny_model()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda none: None):
        CompletionScorer(model, PROMPT)
    assert kept == []


def test_completion_of_one_token_needs_the_prompt_only():
    model = tiny_model()
    scorer = CompletionScorer(model, PROMPT)
    found = scorer.logprobs(COMPLETIONS[2:, :1], MASK[2:, :1])
    found.sum().backward()
    scorer.backward()
    assert found[0, 0].item() == pytest.approx(full_logprobs(model)[2, 0].item(), abs=1e-6)
    assert model.base_model.layers[0].self_attn.q_proj.weight.grad.abs().sum() > 0


def test_adapter_gets_the_gradient_and_the_frozen_head_none():
    model = get_peft_model(tiny_model(), LoraConfig(target_modules="all-linear", r=4, init_lora_weights=False))
    found = scorer_gradients(model)
    assert all("lora_" in name for name in found)
    assert_same(found, full_gradients(model))


def test_bfloat16_is_near_float32():
    expected = full_logprobs(tiny_model())
    found = CompletionScorer(tiny_model().bfloat16(), PROMPT).logprobs(COMPLETIONS, MASK)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.5, rtol=0.1)


def test_head_with_bias():
    model = GPTJForCausalLM(
        GPTJConfig(vocab_size=259, n_embd=32, n_layer=2, n_head=2, rotary_dim=8, n_positions=64, bos_token_id=None)
    ).eval()
    torch.nn.init.normal_(model.lm_head.bias)
    require_plain_head(model)
    assert_same(scorer_gradients(model), full_gradients(model))


def test_sliding_window_models_rerun_the_prompt():
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = MistralForCausalLM(MistralConfig(vocab_size=259, num_key_value_heads=2, sliding_window=3, **sizes)).eval()
    found = CompletionScorer(model, PROMPT).logprobs(COMPLETIONS, MASK)
    torch.testing.assert_close(found, full_logprobs(model), atol=1e-6, rtol=1e-6)


def test_model_that_scales_its_logits_is_refused():
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = Cohere2ForCausalLM(
        Cohere2Config(vocab_size=259, num_key_value_heads=2, logit_scale=0.0625, pad_token_id=0, **sizes)
    ).eval()
    torch.nn.init.normal_(model.lm_head.weight)
    with pytest.raises(ModelError, match="changes its logits"):
        require_plain_head(model)
