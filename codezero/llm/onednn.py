"""Linear layers through oneDNN on x86 CPUs, in float32.

torch computes float32 linears on a CPU with its BLAS, which is slow for the few rows of a decoding step (it repacks the
weight in every call) and, on AMD processors, for many rows too. oneDNN, which is part of torch, is 2 to 5 times faster
there with the same float32 arithmetic. `benchmarks/linear.py` measures the ratios of a machine.

The operators are those that torch's compiler uses for CPU inference. They have no autograd, so `_OneDnnLinear` adds it:
the gradients of y = x Wᵀ + b are ∂x = ∂y W and ∂W = ∂yᵀ x.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

PACK_ROWS = 8
"""The number of rows for which weights are packed; the layout is about equally fast for 1 to 64 rows."""


@cache
def is_available() -> bool:
    """Returns True if this machine and this torch can compute linears by oneDNN."""
    return (
        platform.machine().lower() in ("x86_64", "amd64")
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns x Wᵀ + b without autograd, by oneDNN if `takes(x)`, else by torch. Tensors may have any strides."""
    return _linear(x, weight, bias) if takes(x) else nn.functional.linear(x, weight, bias)


def takes(x: Tensor) -> bool:
    """Returns True if oneDNN can compute a linear of this input."""
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0 and is_available()


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _OneDnnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight)
        ctx.has_bias = bias is not None
        return _linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (grad,) = grads
        x, weight = ctx.saved_tensors
        rows = grad.reshape(-1, grad.shape[-1])  # [N, out]
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = _linear(rows, weight.t(), None).view(*grad.shape[:-1], weight.shape[1])
        if ctx.needs_input_grad[1]:
            grad_weight = _linear(rows.t(), x.reshape(-1, x.shape[-1]).t(), None)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            grad_bias = rows.sum(0)
        return grad_x, grad_weight, grad_bias


class OneDnnForward:
    """A replacement for the forward of one `nn.Linear`, with packed weights while decoding."""

    def __init__(self, layer: nn.Linear) -> None:
        self.layer = layer
        self.packed: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        layer = self.layer
        if not takes(x):
            return nn.functional.linear(x, layer.weight, layer.bias)
        if self.packed is not None and not torch.is_grad_enabled():
            return _linear(x, self.packed, layer.bias)
        result: Tensor = _OneDnnLinear.apply(x, layer.weight, layer.bias)  # type: ignore[no-untyped-call]
        return result


def _forwards(model: nn.Module) -> Iterator[tuple[nn.Linear, OneDnnForward | None]]:
    for layer in model.modules():
        if type(layer) is nn.Linear and layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32:
            forward = layer.__dict__.get("forward")
            yield layer, forward if isinstance(forward, OneDnnForward) else None


def route_linears(model: nn.Module) -> None:
    """Makes every float32 CPU linear of the model compute by oneDNN, in inference and training."""
    for layer, forward in _forwards(model):
        if forward is None:
            layer.forward = OneDnnForward(layer)  # type: ignore[method-assign, assignment]


@contextmanager
def packed_weights(model: nn.Module) -> Iterator[None]:
    """Keeps a copy of the routed layers' weights in oneDNN's blocked layout, for the many small calls of decoding.

    The copies exist within the context only. The weights must not change in it.
    """
    routed = [forward for _, forward in _forwards(model) if forward is not None]
    try:
        with torch.no_grad():
            for forward in routed:
                forward.packed = torch.ops.mkldnn._reorder_linear_weight(forward.layer.weight, PACK_ROWS)
        yield
    finally:
        for forward in routed:
            forward.packed = None
