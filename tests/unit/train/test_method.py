import re
from dataclasses import replace

import pytest
import torch

from codezero.config import TrainConfig, TrainMethod, checkout
from codezero.errors import DoesNotFit
from codezero.train.memory import GIB, QWEN_0_5B, estimate, shape_of
from codezero.train.method import Room, apply_lora, free_room, plan_training
from tests.builders import tiny_model
from tests.unit.train.test_memory import load


def room(memory_gib, disk_gib=100.0):
    return Room(memory=int(memory_gib * GIB), disk=int(disk_gib * GIB))


@pytest.mark.parametrize("method", TrainMethod)
def test_configured_method_is_kept_or_refused(method):
    assert plan_training(QWEN_0_5B, TrainConfig(method=method), load(), room(12)).method is method
    for where in (room(4), room(12, disk_gib=0.1)):
        with pytest.raises(DoesNotFit):
            plan_training(QWEN_0_5B, TrainConfig(method=method), load(), where)


@pytest.fixture
def no_bfloat16(monkeypatch):
    monkeypatch.setattr("codezero.llm.device.computes_in_bfloat16", lambda: False)


def test_too_small_for_full_names_ways_out(x86, no_bfloat16):
    config = TrainConfig(method=TrainMethod.full)
    with pytest.raises(DoesNotFit) as found:
        plan_training(QWEN_0_5B, config, load(), room(6.4))
    assert found.value.needs == ("training with train.method=full needs 6.43 GiB of memory where 6.40 GiB can be used")
    assert str(found.value) == (
        f"{found.value.needs}: set train.method=lora (needs 4.3 GiB), or rollout.max_new_tokens=128 (needs 6.3 GiB), "
        f"or a smaller model.name (`{checkout.COMMAND} models list`)"
    )


def test_the_sizes_of_ways_out_are_enough(x86, monkeypatch):
    monkeypatch.setattr("codezero.llm.device.computes_in_bfloat16", lambda: True)
    with pytest.raises(DoesNotFit) as found:
        plan_training(QWEN_0_5B, TrainConfig(method=TrainMethod.full), load(), room(1))
    lora, narrow, short = (float(size) for size in re.findall(r"\(needs (\d\.\d) GiB\)", str(found.value)))
    ways = (
        (TrainMethod.lora, load(), lora),
        (TrainMethod.full, load(dtype=torch.bfloat16), narrow),
        (TrainMethod.full, load(completion_tokens=128), short),
    )
    for method, work, size in ways:
        assert plan_training(QWEN_0_5B, TrainConfig(method=method), work, room(size + 0.05)).method is method
        with pytest.raises(DoesNotFit):
            plan_training(QWEN_0_5B, TrainConfig(method=method), work, room(size - 0.05))


def on_a_card(shape, memory_gib, **settings):
    work = load(prompt_tokens=512, device_type="cuda", dtype=torch.bfloat16, num_local=2, num_external=2)
    plan = plan_training(shape, TrainConfig(**settings), work, room(memory_gib))
    return plan.train.micro_batch_size, plan.train.gradient_checkpointing


def test_micro_batches_shrink_then_activations_are_recomputed():
    found = [on_a_card(QWEN_0_5B, memory_gib, method=TrainMethod.full) for memory_gib in (13, 10, 8.5, 7.7)]
    assert found == [(0, False), (2, False), (1, False), (1, True)]


def test_a_larger_model_fits_with_small_micro_batches_where_it_was_refused():
    larger = replace(QWEN_0_5B, num_parameters=1_543_714_304, linear_parameters=1_543_569_408, lora_width=1_153_024)
    larger = replace(larger, hidden_size=1536, intermediate_size=8960, key_value_size=256, num_layers=28)
    assert [on_a_card(larger, 0.9 * size) for size in (16, 12)] == [(2, False)] * 2


SEVEN_B = replace(
    QWEN_0_5B,
    num_parameters=7_615_616_512,
    linear_parameters=7_070_281_728,
    lora_width=2_523_136,
    vocab_size=152_064,
    hidden_size=3584,
    intermediate_size=18_944,
    key_value_size=512,
    num_layers=28,
)


def test_masters_are_given_up_where_they_do_not_fit_and_then_a_7b_fits_on_80_gb():
    work = load(prompt_tokens=512, device_type="cuda", dtype=torch.bfloat16, num_local=2, num_external=2)
    asked = TrainConfig(method=TrainMethod.full)
    for shape, gib, masters in ((SEVEN_B, 0.9 * 79, False), (SEVEN_B, 0.9 * 140, True), (QWEN_0_5B, 7, False)):
        plan = plan_training(shape, asked, work, room(gib, disk_gib=1000))
        assert (plan.method, plan.train.masters) == (TrainMethod.full, masters)
        assert plan.peak <= gib * GIB
    with pytest.raises(DoesNotFit, match=r"train\.method=full needs"):
        plan_training(SEVEN_B, asked, work, room(0.9 * 47, disk_gib=1000))


def test_a_micro_batch_that_was_chosen_stays():
    assert on_a_card(QWEN_0_5B, 9, method=TrainMethod.full, micro_batch_size=8) == (8, True)


@pytest.mark.parametrize(
    ("dtype", "named"), [(torch.float32, True), (torch.bfloat16, False)], ids=["float32", "bfloat16"]
)
def test_too_small_for_lora_names_bfloat16_where_the_processor_computes_in_it(monkeypatch, x86, dtype, named):
    monkeypatch.setattr("codezero.llm.device.computes_in_bfloat16", lambda: True)
    with pytest.raises(DoesNotFit) as found:
        plan_training(QWEN_0_5B, TrainConfig(), load(dtype=dtype), room(1))
    assert "train.method=lora" not in str(found.value).removeprefix(found.value.needs)
    assert ("model.dtype=bfloat16" in str(found.value)) is named


def test_short_disk_names_what_needs_less_disk(x86):
    with pytest.raises(DoesNotFit, match=r"needs 11\.0 GiB of disk where 4\.0 GiB can be used") as found:
        plan_training(QWEN_0_5B, TrainConfig(method=TrainMethod.full), load(), room(20, disk_gib=4))
    assert "set train.method=lora (needs 0.2 GiB of disk), or a smaller model.name" in str(found.value)
    assert "max_new_tokens" not in str(found.value)


def test_room_is_the_limit_or_what_is_free(tmp_path):
    limited = free_room(TrainConfig(memory_limit_gib=3.5), torch.device("cpu"), tmp_path / "not" / "yet")
    assert limited.memory == int(3.5 * GIB)
    assert limited.disk > 0
    assert 0 < free_room(TrainConfig(), torch.device("cpu"), tmp_path).memory < 2**50


def test_lora_starts_as_the_model_itself_and_follows_the_seed():
    ids = torch.tensor([[1, 2, 3]])
    one, same, other = (apply_lora(tiny_model(), TrainConfig(lora_r=4), seed) for seed in (1, 1, 2))
    assert torch.equal(one(input_ids=ids).logits, tiny_model()(input_ids=ids).logits)
    weights = [dict(model.named_parameters()) for model in (one, same, other)]
    adapters = [name for name, p in weights[0].items() if p.requires_grad]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in adapters)
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in adapters)


def test_adapters_are_as_large_as_planned():
    model = apply_lora(tiny_model(), TrainConfig(lora_r=4), 0)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    config = TrainConfig(lora_r=4)
    assert estimate(shape_of(tiny_model()), TrainMethod.lora, config, load()).gradients == 4 * trained


def test_adapters_leave_the_global_random_state_alone():
    model = tiny_model()
    state = torch.random.get_rng_state()
    apply_lora(model, TrainConfig(lora_r=4), 5)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(("free_gib", "most", "groups"), [(40, 16, 16), (40, 0, 2), (14, 16, 8), (10, 16, 4)])
def test_a_device_gets_as_many_groups_as_it_is_good_for_and_memory_holds(free_gib, most, groups):
    work = load(prompt_tokens=2048, device_type="cuda", dtype=torch.bfloat16, num_generations=32)
    plan = plan_training(
        QWEN_0_5B, TrainConfig(method=TrainMethod.full), replace(work, num_local=2, most_local=most), room(free_gib)
    )
    assert plan.num_local == groups


@pytest.mark.parametrize("free_gib", [7, 8, 12, 20])
def test_prompts_may_be_as_long_as_memory_holds_a_round_of(free_gib):
    work = load(prompt_tokens=512, num_generations=8)
    config = TrainConfig(method=TrainMethod.lora)
    plan = plan_training(QWEN_0_5B, config, replace(work, most_local=8), room(free_gib))
    longest = replace(work, num_local=plan.num_local, prompt_tokens=plan.longest_prompt)
    assert estimate(QWEN_0_5B, TrainMethod.lora, plan.train, longest).peak <= free_gib * GIB
    longer = replace(longest, prompt_tokens=2 * plan.longest_prompt)
    assert estimate(QWEN_0_5B, TrainMethod.lora, plan.train, longer).peak > free_gib * GIB
    assert plan.peak == estimate(QWEN_0_5B, TrainMethod.lora, plan.train, replace(longest, prompt_tokens=512)).peak
