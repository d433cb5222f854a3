"""A linear layer with a LoRA adapter as one step of the backward pass, in float32 on x86 CPUs.

peft computes x Wᵀ + b, x Aᵀ Bᵀ, the latter times s and their sum as separate steps, forward and backward. On a CPU each
makes a matrix as wide as the layer, in memory that the kernel must allocate and zero; here all are added to the first.
"""

from __future__ import annotations

from typing import Any

import torch
from peft.tuners.lora import Linear, LoraLayer
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from codezero.llm import onednn


class _Adapted(torch.autograd.Function):
    """y = x Wᵀ + b + s x Aᵀ Bᵀ with W and b frozen: with t = s ∂y B, ∂x = ∂y W + t A, ∂A = tᵀ x and ∂B = s ∂yᵀ x Aᵀ
    (LoRA, arXiv 2106.09685)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, down: Tensor, up: Tensor, scale: float
    ) -> Tensor:
        """Returns y [..., out] of x [..., in], weight [out, in], down A [r, in], up B [out, r]."""
        rows = x.reshape(-1, x.shape[-1])
        inner = onednn.linear(rows, down)  # [N, r]
        ctx.save_for_backward(rows, weight, down, up, inner)
        ctx.scale, ctx.shape = scale, x.shape
        return onednn.linear(rows, weight, bias).addmm_(inner, up.t(), alpha=scale).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, down, up, inner = ctx.saved_tensors
        grad = grad.reshape(-1, grad.shape[-1])
        grad_inner = onednn.linear(grad, up.t()).mul_(ctx.scale)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = onednn.linear(grad, weight.t()).addmm_(grad_inner, down).view(ctx.shape)
        grad_down = onednn.linear(grad_inner.t(), rows.t())
        grad_up = onednn.linear(grad.t(), inner.t()).mul_(ctx.scale)
        return grad_x, None, None, grad_down, grad_up, None


class AdaptedForward:
    """A replacement for the forward of a peft linear layer with one active adapter."""

    def __init__(self, layer: Linear) -> None:
        self._layer, self._plain = layer, layer.forward

    def __call__(self, x: Tensor) -> Tensor:
        layer = self._layer
        if layer.disable_adapters or not onednn.takes(x):
            plain: Tensor = self._plain(x)
            return plain
        (name,) = layer.active_adapters
        base, down, up = layer.base_layer, layer.lora_A[name].weight, layer.lora_B[name].weight
        if not torch.is_grad_enabled():  # the base's own forward may have packed weights
            result: Tensor = base(x)
            return result.add_(onednn.linear(onednn.linear(x, down), up), alpha=layer.scaling[name])
        found: Tensor = _Adapted.apply(  # type: ignore[no-untyped-call]
            x, base.weight, base.bias, down, up, layer.scaling[name]
        )
        return found


def active_adapter(model: nn.Module) -> str | None:
    """Returns the name of the adapters that a peft model computes with; None while they are disabled."""
    layer = next(one for one in model.modules() if isinstance(one, LoraLayer))
    return None if layer.disable_adapters else str(layer.active_adapters[0])


def fuse_adapters(model: nn.Module) -> None:
    """Makes the layers of a peft model that have an adapter, without dropout, compute by `_Adapted` if oneDNN computes
    their base."""
    for layer in model.modules():
        if type(layer) is Linear and isinstance(layer.base_layer.__dict__.get("forward"), onednn.OneDnnForward):
            layer.forward = AdaptedForward(layer)
