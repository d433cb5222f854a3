"""The fused step against peft's own, in value and in gradient."""

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model

from codezero.config import TrainConfig
from codezero.llm import onednn
from codezero.llm.adapters import fuse_adapters
from codezero.train.method import active_lora, add_lora, apply_lora
from tests.builders import tiny_model

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason="no oneDNN linears on this processor")
IDS = torch.arange(24).view(2, 12)


def pair(dtype=torch.float32):
    """A model with an adapter, as peft computes it and fused."""
    torch.manual_seed(0)
    plain = tiny_model().to(dtype)
    onednn.route_linears(plain)
    config = LoraConfig(target_modules="all-linear", r=4, lora_alpha=6, init_lora_weights=False)
    plain = get_peft_model(plain, config).eval()
    fused = copy.deepcopy(plain)
    fuse_adapters(fused)
    return plain, fused


def gradients(model):
    model(IDS, labels=IDS).loss.backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_values_and_gradients_are_those_of_peft():
    plain, fused = pair()
    torch.testing.assert_close(fused(IDS).logits, plain(IDS).logits, atol=1e-5, rtol=1e-5)
    wanted, found = gradients(plain), gradients(fused)
    assert found.keys() == wanted.keys()
    assert all("lora_" in name for name in found)
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name], atol=1e-6, rtol=1e-4)
    every = [torch.cat([grad.flatten() for grad in one.values()]).double() for one in (found, wanted)]
    assert torch.cosine_similarity(*every, dim=0) > 1 - 1e-9


def test_each_of_two_adapters_computes_and_is_trained_alone():
    torch.manual_seed(0)
    model = tiny_model()
    onednn.route_linears(model)
    both = apply_lora(model, TrainConfig(lora_r=4), seed=0)
    add_lora(both, "other", TrainConfig(lora_r=2), seed=1)
    for name, weight in both.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    own = both(IDS).logits
    with active_lora(both, "other"):
        other = both(IDS).logits
        assert all(".other." in name for name in gradients(both))
        with both.disable_adapter():
            bare = both(IDS).logits
        assert torch.equal(both(IDS).logits, other)
    both.zero_grad()
    assert all(".default." in name for name in gradients(both))
    assert torch.equal(both(IDS).logits, own)
    assert not any(torch.allclose(*two) for two in ((own, other), (own, bare), (other, bare)))


def test_a_layer_is_one_step_of_the_backward_pass():
    _, fused = pair()
    layer = fused.get_base_model().model.layers[0].mlp.up_proj
    x = torch.randn(2, 3, layer.in_features, requires_grad=True)
    assert type(layer(x).grad_fn).__name__ == "_AdaptedBackward"


def test_the_base_is_seen_without_adapters_and_both_without_gradients():
    plain, fused = pair()
    for context in (torch.no_grad(), torch.enable_grad()):
        with context:
            torch.testing.assert_close(fused(IDS).logits, plain(IDS).logits, atol=1e-5, rtol=1e-5)
            with plain.disable_adapter(), fused.disable_adapter():
                bare = fused(IDS).logits
                assert torch.equal(bare, plain(IDS).logits)
            assert not torch.allclose(bare, fused(IDS).logits)


def test_other_precisions_are_left_to_peft():
    plain, fused = pair(torch.bfloat16)
    assert torch.equal(fused(IDS).logits, plain(IDS).logits)
