import pytest
import torch
from torch import nn

from codezero.llm import onednn
from tests.builders import tiny_model

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason="no oneDNN linears on this processor")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 12), (2, 3, 12), (1, 1, 12)])
def test_forward_and_gradients_equal_those_of_torch(shape, bias):
    torch.manual_seed(0)
    layer = nn.Linear(12, 7, bias=bias)
    x = torch.randn(shape, requires_grad=True)
    weights = torch.randn(*shape[:-1], 7)

    def run():
        layer.zero_grad()
        x.grad = None
        y = layer(x)
        (y * weights).sum().backward()
        return [t.clone() for t in (y.detach(), x.grad, *(p.grad for p in layer.parameters()))]

    expected = run()
    onednn.route_linears(layer)
    assert isinstance(layer.forward, onednn.OneDnnForward)
    for found, wanted in zip(run(), expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)


def test_whole_model_has_the_same_gradients():
    ids = torch.arange(24).view(2, 12)
    plain, routed = tiny_model(), tiny_model()
    onednn.route_linears(routed)
    for model in (plain, routed):
        model(ids, labels=ids).loss.backward()
    for (name, wanted), found in zip(plain.named_parameters(), routed.parameters(), strict=True):
        assert torch.allclose(found.grad, wanted.grad, atol=1e-5), name


def test_packed_weights_are_used_only_inside_the_block_and_follow_an_update():
    layer = nn.Linear(16, 16)
    onednn.route_linears(layer)
    x = torch.randn(4, 16)
    with torch.no_grad(), onednn.packed_weights(layer):
        before = layer(x)
    with torch.no_grad():
        layer.weight.mul_(2)
        layer.bias.mul_(2)
    with torch.no_grad(), onednn.packed_weights(layer):
        assert torch.allclose(layer(x), 2 * before, atol=1e-5)
    assert layer.forward.packed is None


def test_frozen_weights_get_no_gradient():
    layer = nn.Linear(8, 8).requires_grad_(False)
    onednn.route_linears(layer)
    x = torch.randn(3, 8, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None


def test_other_precisions_are_left_to_torch():
    layer = nn.Linear(4, 4).bfloat16()
    onednn.route_linears(layer)
    assert not isinstance(layer.forward, onednn.OneDnnForward)
