import pytest
import torch
from torch import nn

from codezero.config import Moments, TrainConfig
from codezero.train import optimizer
from codezero.train.batch import TrainSequence
from codezero.train.optimizer import MasterAdamW, stochastic_round
from tests.builders import tiny_model
from tests.unit.train.builders import policy_passes

FLOAT32, BFLOAT16 = Moments.float32, Moments.bfloat16


def parameters(dtype=torch.float32):
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape).to(dtype)) for shape in ((7, 5), (5,))]


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) for shape in ((7, 5), (5,))]


def take(adam, params, steps):
    for step in steps:
        for parameter, grad in zip(params, gradients(step), strict=True):
            parameter.grad = grad.to(parameter.grad_dtype)
        adam.apply(1e9)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1 << 20, 4])
def test_with_float32_moments_it_is_torchs_adamw(monkeypatch, decay, chunk):
    monkeypatch.setattr(optimizer, "CHUNK", chunk)
    ours, theirs = parameters(), parameters()
    groups = [{"params": theirs[:1], "weight_decay": decay}, {"params": theirs[1:], "weight_decay": 0.0}]
    oracle = torch.optim.AdamW(groups, lr=0.01)
    adam = MasterAdamW(ours, 0.01, decay, FLOAT32)
    for step in range(20):
        take(adam, ours, [step])
        for parameter, grad in zip(theirs, gradients(step), strict=True):
            parameter.grad = grad
        oracle.step()
    for found, wanted in zip(ours, theirs, strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_bfloat16_moments_stay_within_a_hundredth_of_the_way():
    whole, small = parameters(), parameters()
    start = [p.detach().clone() for p in whole]
    take(MasterAdamW(whole, 0.01, 0.0, FLOAT32), whole, range(300))
    take(MasterAdamW(small, 0.01, 0.0, BFLOAT16), small, range(300))
    way = torch.cat([(p - s).flatten() for p, s in zip(whole, start, strict=True)]).norm()
    apart = torch.cat([(p - q).flatten() for p, q in zip(whole, small, strict=True)]).norm()
    assert apart < 0.01 * way


def test_the_second_moment_falls_when_gradients_stop():
    (parameter,) = params = [nn.Parameter(torch.zeros(4096))]
    adam = MasterAdamW(params, 0.01, 0.0, BFLOAT16)
    for step in range(201):
        parameter.grad = torch.full((4096,), 1.0 if step == 0 else 0.0)
        adam.apply(1e9)
    (square,) = adam.state_dict()["squares"]
    assert square.dtype is torch.bfloat16
    assert square.float().mean().item() == pytest.approx(0.001 * 0.999**200, rel=0.01)  # to nearest it would stay 0.001


def test_stochastic_rounding_keeps_the_mean_and_gives_exact_bfloat16():
    x = torch.full((100_000,), 1.0 + 1 / 512)  # a quarter of the way from 1 to the next bfloat16, 1 + 1/128
    noise = torch.randint(1 << 16, x.shape, dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    rounded = stochastic_round(x, noise)
    assert set(rounded.tolist()) == {1.0, 1.0 + 1 / 128}
    assert rounded.mean().item() == pytest.approx(1.0 + 1 / 512, abs=1e-4)
    assert torch.equal(rounded.bfloat16().float(), rounded)


def test_without_masters_steps_below_half_of_a_weights_precision_move_it_on_average():
    """0.02 lies between bfloat16 values that are 1.2e-4 apart, so to nearest no step of 1e-6 would ever change it."""
    (weight,) = params = [nn.Parameter(torch.full((200_000,), 0.02, dtype=torch.bfloat16))]
    start = weight.detach().float()
    adam = MasterAdamW(params, 1e-6, 0.0, BFLOAT16, masters=False)
    for _ in range(20):
        weight.grad = torch.ones_like(weight)
        adam.apply(1e9)
    moved = start - weight.detach().float()
    assert moved.mean().item() == pytest.approx(20 * 1e-6, rel=0.03)  # 0.6 % is its standard error
    assert {0.0, 1.0} < set((moved / 2**-13).tolist()) < set(range(10))
    assert [x.dtype for x in (*adam.masters, *adam.state_dict()["means"])] == [torch.bfloat16] * 2


def test_without_masters_weights_stay_near_those_that_have_them():
    exact, rounded = parameters(torch.bfloat16), parameters(torch.bfloat16)
    start = [p.detach().float() for p in exact]
    with_masters = MasterAdamW(exact, 0.01, 0.0, BFLOAT16)
    take(with_masters, exact, range(300))
    take(MasterAdamW(rounded, 0.01, 0.0, BFLOAT16, masters=False), rounded, range(300))
    way = torch.cat([(p - s).flatten() for p, s in zip(with_masters.masters, start, strict=True)]).norm()
    apart = torch.cat([(p - q).flatten() for p, q in zip(with_masters.masters, rounded, strict=True)]).norm()
    assert apart < 0.3 * way


def test_each_chunk_of_weights_is_rounded_by_its_own_numbers(monkeypatch):
    monkeypatch.setattr(optimizer, "CHUNK", 1000)
    (weight,) = params = [nn.Parameter(torch.full((2000,), 0.02, dtype=torch.bfloat16))]
    adam = MasterAdamW(params, 5e-5, 0.0, BFLOAT16, masters=False)
    weight.grad = torch.ones_like(weight)
    adam.apply(1e9)
    assert not torch.equal(*weight.detach().split(1000))


@pytest.mark.parametrize("moments", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize(("dtype", "masters"), [(torch.float32, True), (torch.bfloat16, True), (torch.bfloat16, False)])
def test_a_resumed_optimizer_goes_on_bit_for_bit(moments, dtype, masters):
    unkilled, before, after = parameters(dtype), parameters(dtype), parameters(dtype)
    take(MasterAdamW(unkilled, 0.01, 0.0, moments, masters), unkilled, range(6))
    first = MasterAdamW(before, 0.01, 0.0, moments, masters)
    take(first, before, range(3))
    second = MasterAdamW(after, 0.01, 0.0, moments, masters)
    for master, saved in zip(second.masters, first.masters, strict=True):
        master.copy_(saved)
    second.load_state_dict(first.state_dict())
    take(second, after, range(3, 6))
    assert all(torch.equal(found, wanted) for found, wanted in zip(after, unkilled, strict=True))


def test_a_norm_that_is_not_finite_changes_nothing():
    params = parameters()
    before = [p.detach().clone() for p in params]
    adam = MasterAdamW(params, 0.01, 0.0, BFLOAT16)
    params[0].grad = torch.full((7, 5), float("nan"))
    assert adam.apply(1.0) != adam.apply(1.0)  # nan, then 0 of no gradients
    assert all(torch.equal(p, b) for p, b in zip(params, before, strict=True))
    assert params[0].grad is None


def test_gradients_of_bfloat16_weights_add_up_in_float32():
    """In bfloat16 a sum of a hundred equal gradients is off by more than a hundredth."""
    model = tiny_model().bfloat16()
    MasterAdamW(model.parameters(), 1e-6, 0.0, BFLOAT16)
    passes = policy_passes(model, TrainConfig())
    sequence = [TrainSequence(prompt_ids=(1, 2), completion_ids=(5, 6, 7), advantage=1.0)]
    passes.add_gradients(sequence, 0, 1)
    once = [p.grad.clone() for p in model.parameters()]
    for _ in range(99):
        passes.add_gradients(sequence, 0, 1)
    for parameter, grad in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 100 * grad, rtol=1e-3, atol=1e-4)
