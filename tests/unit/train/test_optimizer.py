import pytest
import torch
from torch import nn

from codezero.config import Moments, TrainConfig
from codezero.train import optimizer
from codezero.train.batch import TrainSequence
from codezero.train.optimizer import MasterAdamW, stochastic_round
from codezero.train.passes import PolicyPasses
from tests.builders import tiny_model

FLOAT32, BFLOAT16 = Moments.float32, Moments.bfloat16


def parameters(dtype=torch.float32):
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape).to(dtype)) for shape in ((7, 5), (5,))]


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) for shape in ((7, 5), (5,))]


def take(adam, params, steps, max_grad_norm=1e9):
    for step in steps:
        for parameter, grad in zip(params, gradients(step), strict=True):
            parameter.grad = grad
        adam.apply(max_grad_norm)


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


@pytest.mark.parametrize("moments", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_resumed_optimizer_goes_on_bit_for_bit(moments, dtype):
    unkilled, before, after = parameters(dtype), parameters(dtype), parameters(dtype)
    take(MasterAdamW(unkilled, 0.01, 0.0, moments), unkilled, range(6))
    first = MasterAdamW(before, 0.01, 0.0, moments)
    take(first, before, range(3))
    second = MasterAdamW(after, 0.01, 0.0, moments)
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
    passes = PolicyPasses(
        model, TrainConfig(), temperature=1.0, max_completion_length=4, reference_model=None, progress=lambda *_: None
    )
    sequence = [TrainSequence(prompt_ids=(1, 2), completion_ids=(5, 6, 7), advantage=1.0)]
    passes.add_gradients(sequence, 0, 1)
    once = [p.grad.clone() for p in model.parameters()]
    for _ in range(99):
        passes.add_gradients(sequence, 0, 1)
    for parameter, grad in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 100 * grad, rtol=1e-3, atol=1e-4)
