import json

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from codezero.config import Moments, RolloutEngine, TrainConfig, TrainMethod
from codezero.errors import ModelError
from codezero.llm import onednn
from codezero.llm.logprobs import CompletionScorer
from codezero.llm.recompute import recompute_products
from codezero.runtime.amounts import GIB
from codezero.train.memory import QWEN_0_5B, ModelShape, Workload, estimate, micro_batch_sequences, read_shape, shape_of
from codezero.train.method import apply_lora
from tests.builders import save_tiny, tiny_model
from tests.unit.llm.test_recompute import numbers_kept


def load(**changes):
    settings = {
        "num_local": 1,
        "num_external": 0,
        "num_generations": 4,
        "prompt_tokens": 150,
        "completion_tokens": 256,
        "dtype": torch.float32,
        "device_type": "cpu",
        "evaluator_bytes": 0,
    }
    return Workload(**{**settings, **changes})


def test_shape_is_read_from_the_config_alone(tmp_path):
    folder = save_tiny(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    shape = read_shape(folder)
    assert shape == shape_of(tiny_model())
    assert shape == ModelShape(
        num_parameters=259 * 32 + 2 * (2 * 32 * 32 + 2 * 32 * 16 + 32 + 16 + 16 + 3 * 32 * 48 + 2 * 32) + 32,
        linear_parameters=259 * 32 + 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48),
        lora_width=2 * (2 * 64 + 2 * 48 + 3 * 80),
        vocab_size=259,
        hidden_size=32,
        intermediate_size=48,
        key_value_size=16,
        num_layers=2,
    )


def test_untied_head_counts_twice():
    tied, untied = shape_of(tiny_model()), shape_of(tiny_model(tie=False))
    assert untied.num_parameters - tied.num_parameters == 259 * 32


def test_the_default_models_shape_is_that_of_its_architecture():
    sizes = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24}
    with torch.device("meta"):
        model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=151_936, num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True, **sizes
            )
        )
    assert shape_of(model) == QWEN_0_5B


def test_folder_without_a_model_is_a_model_error(tmp_path):
    with pytest.raises(ModelError, match=r"give an -Instruct model as model\.name"):
        read_shape(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": 0},
        {"hidden_size": "x"},
        {"vocab_size": -1},
        {"hidden_act": "none such"},
        {"rope_scaling": {"rope_type": "none such"}},
        {"dtype": "none such"},
        {"model_type": "their_own", "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}},
    ],
)
def test_a_config_of_a_stranger_is_a_model_error_and_its_code_is_not_asked_about(tmp_path, monkeypatch, changes):
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("a question on the terminal"))
    save_tiny(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=r"holds no causal language model: .*; give an -Instruct model as model\.name"):
        read_shape(tmp_path)


def test_printed_plan_of_the_default_model(x86):
    found = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(), load())
    assert found.line() == (
        "full: 6.9 GiB of memory (weights 1.8, optimizer 1.8, gradients 1.8, decode weights 1.8, activations 0.8, "
        "runtime 0.5) and 11.0 GiB of disk"
    )


def test_lora_peaks_while_solving(x86):
    found = estimate(QWEN_0_5B, TrainMethod.lora, TrainConfig(), load(evaluator_bytes=2 * GIB))
    assert found.learn / GIB == pytest.approx(5.18, abs=0.01)
    assert found.solve / GIB == pytest.approx(6.32, abs=0.01)
    assert found.peak == found.solve
    assert found.disk / GIB == pytest.approx(0.20, abs=0.01)


def test_bfloat16_on_cuda_keeps_float32_masters_and_no_packed_weights():
    found = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(), load(dtype=torch.bfloat16, device_type="cuda"))
    n = 494_032_768
    assert (found.weights, found.optimizer, found.gradients, found.decode_weights) == (2 * n, 8 * n, 4 * n, 0)
    assert found.disk == 3 * 8 * n


@pytest.mark.parametrize(("dtype", "is_x86"), [(torch.bfloat16, True), (torch.float32, False)])
def test_a_cpu_packs_weights_in_float32_by_onednn_only(monkeypatch, dtype, is_x86):
    monkeypatch.setattr(onednn, "is_available", lambda: is_x86)
    assert estimate(QWEN_0_5B, TrainMethod.lora, TrainConfig(), load(dtype=dtype)).decode_weights == 0


def test_without_masters_bfloat16_weights_take_eight_bytes_a_parameter():
    work, n = load(dtype=torch.bfloat16, device_type="cuda"), 494_032_768
    found = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(masters=False), work)
    assert (found.weights, found.optimizer, found.gradients, found.disk) == (2 * n, 4 * n, 2 * n, 3 * 6 * n)
    assert found.line().startswith("full, train.masters=false: ")
    for method, other in ((TrainMethod.lora, work), (TrainMethod.full, load())):
        kept, without = (estimate(QWEN_0_5B, method, TrainConfig(masters=masters), other) for masters in (True, False))
        assert kept.peak == without.peak


def test_whole_moments_cost_four_bytes_a_parameter_more():
    small = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(), load())
    whole = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(moments=Moments.float32), load())
    assert whole.optimizer - small.optimizer == 4 * 494_032_768


def test_reference_is_one_more_copy_for_full_only():
    config = TrainConfig(beta=0.04)
    assert estimate(QWEN_0_5B, TrainMethod.full, config, load()).reference == 4 * 494_032_768
    assert estimate(QWEN_0_5B, TrainMethod.lora, config, load()).reference == 0


def test_checkpointing_trades_activations_for_time():
    plain = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(), load())
    less = estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(gradient_checkpointing=True), load())
    assert less.activations < 0.5 * plain.activations  # logits are the rest


@pytest.mark.parametrize(
    ("settings", "changes", "expected"),
    [
        ({}, {}, 1),
        ({}, {"completion_tokens": 64}, 4),
        ({}, {"completion_tokens": 64, "num_generations": 3}, 3),
        ({}, {"completion_tokens": 512}, 1),
        ({"micro_batch_size": 2}, {"completion_tokens": 512}, 2),
        ({}, {"device_type": "cuda"}, 4),
        ({}, {"device_type": "cuda", "num_local": 2}, 8),
        ({}, {"device_type": "cuda", "num_local": 2, "num_external": 2}, 10),
        ({}, {"device_type": "cuda", "num_local": 2, "num_external": 9}, 10),  # of 150 and 256 tokens
        ({}, {"device_type": "cuda", "num_local": 1, "num_replayed": 1}, 8),
        ({}, {"num_external": 9}, 1),
        ({"micro_batch_size": 12}, {"num_external": 1}, 8),
    ],
)
def test_full_length_completions_in_a_micro_batch(settings, changes, expected):
    assert micro_batch_sequences(TrainConfig(**settings), load(**changes)) == expected


def test_peers_groups_cost_activations_where_micro_batches_have_room_and_never_cache():
    alone, shared = (
        estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(micro_batch_size=8), load(num_external=n)) for n in (0, 1)
    )
    assert shared.activations > 1.5 * alone.activations
    assert shared.kv_cache == alone.kv_cache
    on_cpu = [estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(), load(num_external=n)) for n in (0, 6)]
    assert on_cpu[0] == on_cpu[1]


def test_cache_grows_with_own_groups():
    one, two = (estimate(QWEN_0_5B, TrainMethod.full, TrainConfig(), load(num_local=n)).kv_cache for n in (1, 2))
    assert two == 2 * one


def trained(method, config):
    """A model of many layers as it is trained, its shape, and the bytes of its head's gradient."""
    base = tiny_model(hidden_size=64, intermediate_size=256, num_hidden_layers=12)
    recompute_products(base)
    shape, is_full = shape_of(base), method is TrainMethod.full
    return base if is_full else apply_lora(base, config, 0), shape, 4 * 259 * 64 * is_full


@pytest.mark.parametrize("method", [TrainMethod.full, TrainMethod.lora])
@pytest.mark.parametrize(("prompt", "completion"), [(300, 1), (100, 128)])
def test_activations_are_what_passes_keep(method, prompt, completion, monkeypatch):
    config = TrainConfig(lora_r=2, micro_batch_size=2)
    model, shape, head_bytes = trained(method, config)
    scorer = CompletionScorer(model, torch.zeros(prompt, dtype=torch.long))
    ids = torch.zeros(2, completion, dtype=torch.long)
    passes = (scorer.run_prompt, lambda: scorer.logprobs(ids, torch.ones_like(ids, dtype=torch.bool)))
    seen = 4 * max(numbers_kept(model, one, monkeypatch)[1] for one in passes)
    found = estimate(shape, method, config, load(prompt_tokens=prompt, completion_tokens=completion))
    logits = 2 * 4 * min(256, 2 * completion) * 259 + head_bytes
    planned = found.activations - (logits if completion > 1 else 0)
    assert 0.9 * seen < planned < 1.1 * seen


@pytest.mark.parametrize("method", [TrainMethod.full, TrainMethod.lora])
def test_activations_of_an_accelerator_are_what_a_pass_across_prompts_keeps(method, monkeypatch):
    config = TrainConfig(lora_r=2, micro_batch_size=2)
    model, shape, head_bytes = trained(method, config)
    prompts, ids = torch.zeros(2, 100, dtype=torch.long), torch.zeros(2, 128, dtype=torch.long)
    scorer = CompletionScorer(model, prompts, lengths=torch.tensor([100, 100]), width=228)
    seen = 4 * numbers_kept(model, lambda: scorer.logprobs(ids, torch.ones_like(ids, dtype=torch.bool)), monkeypatch)[1]
    work = load(prompt_tokens=100, completion_tokens=128, device_type="cuda")
    found = estimate(shape, method, config, work)
    logits = 2 * 4 * 2 * 128 * 259 + head_bytes
    assert 0.9 * seen < found.activations - logits < 1.2 * seen


@pytest.mark.parametrize("method", [TrainMethod.full, TrainMethod.lora])
def test_vllm_has_a_copy_of_the_weights_while_solving_and_keeps_its_process(method):
    ours, theirs = (
        estimate(QWEN_0_5B, method, TrainConfig(), load(engine=engine, device_type="cuda", dtype=torch.bfloat16))
        for engine in (RolloutEngine.transformers, RolloutEngine.vllm)
    )
    assert (theirs.solve - ours.solve) / GIB == pytest.approx(0.92 + 3, abs=0.01)
    assert (theirs.learn - ours.learn) / GIB == 1.5
    assert (theirs.disk - ours.disk) / GIB == pytest.approx(0.92 if method is TrainMethod.full else 0.03, abs=0.01)


def test_llama_cpp_samples_with_a_quarter_of_the_bytes_beside_and_none_of_the_packed_copy(x86):
    ours, theirs = (
        estimate(QWEN_0_5B, TrainMethod.lora, TrainConfig(), load(engine=engine))
        for engine in (RolloutEngine.transformers, RolloutEngine.llama_cpp)
    )
    assert ours.decode_weights / GIB == pytest.approx(1.84, abs=0.01)
    assert theirs.decode_weights / GIB == pytest.approx(0.60, abs=0.01)
    assert theirs.kv_cache / ours.kv_cache == pytest.approx(512 / 406 / 2)  # half as wide, of 256 tokens at a time
    assert theirs.learn == ours.learn
    assert theirs.disk - ours.disk == 34 * QWEN_0_5B.num_parameters // 32
