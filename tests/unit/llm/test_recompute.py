"""Gated MLPs that keep less for their gradients, against what transformers does: the same to the bit."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.autograd.graph import saved_tensors_hooks
from transformers import LlamaConfig, LlamaForCausalLM

from codezero.llm import onednn, recompute
from codezero.llm.recompute import gated_mlps, recompute_products
from tests.builders import tiny_model

IDS = torch.arange(3, 43).view(2, 20)


def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return LlamaForCausalLM(LlamaConfig(vocab_size=259, mlp_bias=True, **sizes)).eval()


def with_adapter():
    return get_peft_model(tiny_model(), LoraConfig(target_modules="all-linear", r=4, init_lora_weights=False))


def routed():
    model = tiny_model()
    onednn.route_linears(model)
    return model


def numbers_kept(model, work, monkeypatch):
    """What `work` gives, and how many float32 its forward pass keeps for gradients beside the weights."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def remember(packed):
        if isinstance(packed, torch.Tensor):
            kept[packed.untyped_storage().data_ptr()] = packed
        return packed

    def inner(pack, unpack):  # the innermost hooks are the only ones that are asked
        return saved_tensors_hooks(lambda tensor: remember(pack(tensor)), unpack)

    monkeypatch.setattr(recompute, "saved_tensors_hooks", inner)
    with saved_tensors_hooks(remember, lambda tensor: tensor):
        found = work()
    return found, sum(one.untyped_storage().nbytes() // 4 for address, one in kept.items() if address not in own)


def learn(model, monkeypatch):
    """The loss, its gradients, and how many numbers were kept for these."""
    loss, size = numbers_kept(model, lambda: model(IDS, labels=IDS).loss, monkeypatch)
    loss.backward()
    return loss, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}, size


@pytest.mark.parametrize("make", [tiny_model, llama, with_adapter, routed])
def test_same_loss_and_gradients_from_half_of_what_an_mlp_keeps(make, monkeypatch):
    plain, less = make(), make()
    recompute_products(less)
    loss, gradients, size = learn(plain, monkeypatch)
    found_loss, found, found_size = learn(less, monkeypatch)
    assert torch.equal(found_loss, loss)
    assert found.keys() == gradients.keys()
    assert all(torch.equal(found[name], gradients[name]) for name in gradients)
    assert size - found_size == 2 * 2 * IDS.numel() * 48  # silu(gate) and the product, in two layers


def test_other_activations_stay_as_they_are():
    assert gated_mlps(tiny_model(hidden_act="gelu")) == []


def test_nothing_is_kept_without_gradients():
    model = tiny_model()
    expected = model(IDS).logits
    recompute_products(model)
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, expected)
