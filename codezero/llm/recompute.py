"""Gated MLPs that keep two vectors of their width per token for the backward pass instead of four.

y = down(silu(gate(x)) * up(x)) keeps gate(x), silu(gate(x)), up(x) and their product. The first and the third suffice:
the other two are recomputed when needed, elementwise, so bit by bit the same. With 24 layers of 4,864 that saves 0.9
MiB per token.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks
from transformers.models.llama.modeling_llama import LlamaMLP
from transformers.models.qwen2.modeling_qwen2 import Qwen2MLP
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP


def gated_mlps(model: nn.Module) -> list[Any]:
    """Returns the MLPs of a model that have this form."""
    layers: list[Any] = [layer for layer in model.modules() if type(layer) in (LlamaMLP, Qwen2MLP, Qwen3MLP)]
    return [layer for layer in layers if layer.config.hidden_act == "silu"]


def recompute_products(model: nn.Module) -> None:
    """Makes every gated MLP of the model keep two vectors only. Values and gradients stay the same."""
    for layer in gated_mlps(model):
        layer.forward = partial(_forward, layer)


def _forward(layer: Any, x: Tensor) -> Tensor:
    gate, up = layer.gate_proj(x), layer.up_proj(x)
    product: Tensor = _Gated.apply(gate, up)  # type: ignore[no-untyped-call]
    gate, up, address = gate.detach(), up.detach(), product.untyped_storage().data_ptr()

    def pack(kept: Tensor) -> Any:
        if kept.untyped_storage().data_ptr() != address:
            return kept
        return kept.size(), kept.stride(), kept.storage_offset()

    def unpack(packed: Any) -> Tensor:
        return packed if isinstance(packed, Tensor) else _product(gate, up).as_strided(*packed)

    # Layers that keep the product as their input, among them adapters, keep its size, strides and offset instead.
    with saved_tensors_hooks(pack, unpack):
        result: Tensor = layer.down_proj(product)
    return result


def _product(gate: Tensor, up: Tensor) -> Tensor:
    return nn.functional.silu(gate) * up


class _Gated(torch.autograd.Function):
    """silu(gate) * up, which keeps its inputs only; the gradients are those of autograd."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return _product(gate, up)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grad * up, gate), grad * nn.functional.silu(gate)
