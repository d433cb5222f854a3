"""AdamW (arXiv 1711.05101) that also learns when the weights are bfloat16."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class MasterAdamW:
    """AdamW at a constant rate on float32 masters of the trained parameters.

    A bfloat16 weight of 0.02 cannot take a step below 6e-5, sixty times what train.learning_rate asks for: rounding
    would undo every update. Such weights get a float32 master that is updated and rounded back; float32 weights are
    their own master. Only matrices decay, as is usual; norms and biases do not.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float, weight_decay: float) -> None:
        self._parameters = [p for p in parameters if p.requires_grad]
        self._masters = [p if p.dtype == torch.float32 else nn.Parameter(p.detach().float()) for p in self._parameters]
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        matrices = [m for m in self._masters if m.ndim >= 2]
        others = [m for m in self._masters if m.ndim < 2]
        # Fused is ten times faster than the default on CPU and needs no temporaries.
        self._adam = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}],
            lr=learning_rate,
            fused=True,
        )

    def apply(self, max_grad_norm: float) -> float:
        """One update from the gradients, which are used up; returns their global norm before clipping.

        A norm that is not finite changes nothing.
        """
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if master is not parameter and parameter.grad is not None:
                master.grad, parameter.grad = parameter.grad.float(), None
        norm = float(nn.utils.clip_grad_norm_(self._masters, max_grad_norm))
        if math.isfinite(norm):
            self._adam.step()
            self._round_back()
        self.drop_gradients()
        return norm

    def drop_gradients(self) -> None:
        """Frees all gradients."""
        for tensor in (*self._parameters, *self._masters):
            tensor.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Adam's moments, and the masters of parameters that are not float32."""
        return {"adam": self._adam.state_dict(), "masters": [m.detach() for m in self._extra_masters()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from `state_dict` of the same parameters; rate and decay stay as configured now."""
        self._adam.load_state_dict(state["adam"])
        for group, decay in zip(self._adam.param_groups, (self._weight_decay, 0.0), strict=True):
            group["lr"], group["weight_decay"] = self._learning_rate, decay
        with torch.no_grad():
            for master, saved in zip(self._extra_masters(), state["masters"], strict=True):
                master.copy_(saved)
        self._round_back()

    def _extra_masters(self) -> list[Tensor]:
        return [m for p, m in zip(self._parameters, self._masters, strict=True) if m is not p]

    @torch.no_grad()
    def _round_back(self) -> None:
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if master is not parameter:
                parameter.copy_(master)
