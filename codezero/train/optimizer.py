"""AdamW (arXiv 1711.05101) with a smaller state: 12 bytes per parameter with gradients instead of 16.

Adam's two moments are stored in bfloat16, as in DeepSeek-V3 (arXiv 2412.19437, section 3.3.3), with stochastic
rounding: up with a probability proportional to the cut-off part. Rounding to nearest would lose every change below 1 in
256, and the second moment, which changes by 1 in 1000 per step, would never fall. `train.moments=float32` does not
round them.

`train.masters=false` keeps bfloat16 weights without float32 masters and rounds each update into them in the same way
(Zamirai et al., Revisiting BFloat16 Training, arXiv 2010.06192).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from codezero.config import Moments

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""The defaults of the paper and of torch."""
CHUNK, ACCELERATOR_CHUNK = 1 << 18, 1 << 24
"""The number of elements updated at a time. On a CPU, so that the float32 temporaries stay in the processor's cache; on
an accelerator, where each part of the update is a kernel to start, a 0.5B model takes 4,800 of them a step, not
34,000."""


class MasterAdamW:
    """AdamW at a constant rate on float32 masters of the trained parameters.

    A bfloat16 weight of 0.02 cannot change by less than 6e-5, sixty times train.learning_rate: rounding would undo
    every update. Such weights get a float32 master that is updated and then rounded into the weight; float32 weights
    are their own masters. Without masters an update is made in float32 and rounded stochastically into the weight,
    which keeps the mean, and gradients are summed in bfloat16. Only matrices decay, as is usual; norms and biases do
    not.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        moments: Moments,
        masters: bool = True,
    ) -> None:
        self._parameters = [p for p in parameters if p.requires_grad]
        own = torch.float32 if masters else torch.bfloat16
        self._masters = [
            p if p.dtype in (torch.float32, own) else nn.Parameter(p.detach().float()) for p in self._parameters
        ]
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            parameter.grad_dtype = master.dtype  # the precision that micro-batches add up in
        self._learning_rate, self._weight_decay = learning_rate, weight_decay
        on_cpu = all(p.device.type == "cpu" for p in self._parameters)
        self._chunk = CHUNK if on_cpu else ACCELERATOR_CHUNK
        self._dtype = torch.bfloat16 if moments is Moments.bfloat16 else torch.float32
        self._num_steps = 0
        self._means: list[Tensor] = []
        self._squares: list[Tensor] = []

    def apply(self, max_grad_norm: float) -> float:
        """Makes one update from the gradients and frees them. Returns their global norm before clipping; if that is not
        finite, no weight changes."""
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if master is not parameter and parameter.grad is not None:
                master.grad, parameter.grad = parameter.grad, None
        norm = float(nn.utils.clip_grad_norm_(self._masters, max_grad_norm))
        if math.isfinite(norm):
            self._step()
            self._round_back()
        self.drop_gradients()
        return norm

    def drop_gradients(self) -> None:
        """Frees all gradients."""
        for tensor in (*self._parameters, *self._masters):
            tensor.grad = None

    @property
    def masters(self) -> list[Tensor]:
        """The trained parameters in the model's order, in float32 where they have masters; updates change them in
        place."""
        return [master.detach() for master in self._masters]

    def state_dict(self) -> dict[str, Any]:
        """Returns the number of steps, and Adam's moments, which change in place; masters are saved as the weights."""
        return {"num_steps": self._num_steps, "means": list(self._means), "squares": list(self._squares)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a `state_dict`, after saved weights were copied into `masters`; learning rate, decay and precision
        of the moments stay as configured now."""
        self._num_steps = state["num_steps"]
        self._means, self._squares = (
            [saved.to(m.device, self._dtype) for saved, m in zip(state[name], self._masters, strict=False)]
            for name in ("means", "squares")
        )
        extra = [m for p, m in zip(self._parameters, self._masters, strict=True) if m is not p]
        with torch.no_grad():
            for master, saved in zip(extra, state.get("masters", ()), strict=False):  # before format 2
                master.copy_(saved)
        self._round_back()

    @torch.no_grad()
    def _step(self) -> None:
        if not self._means:
            self._means, self._squares = ([torch.zeros_like(m, dtype=self._dtype) for m in self._masters] for _ in "12")
        self._num_steps += 1
        generator = torch.Generator(self._masters[0].device).manual_seed(self._num_steps)
        noise = self._noise(generator, self._chunk)
        for master, mean, square in zip(self._masters, self._means, self._squares, strict=True):
            if master.grad is None:
                continue
            decay = self._weight_decay if master.ndim >= 2 else 0.0
            flat = (torch.split(x.view(-1), self._chunk) for x in (master, master.grad, mean, square))
            for weight, grad, m, v in zip(*flat, strict=True):
                w32, m32, v32 = weight.float(), m.float(), v.float()  # the same tensors if they are float32
                self._update(w32, grad.float(), m32, v32, decay)
                if weight.dtype is torch.bfloat16:
                    weight.copy_(stochastic_round(w32, self._noise(generator, len(w32))))
                if self._dtype is torch.bfloat16:
                    m.copy_(stochastic_round(m32, noise))
                    v.copy_(stochastic_round(v32, noise))

    def _update(self, weight: Tensor, grad: Tensor, mean: Tensor, square: Tensor, decay: float) -> None:
        step = self._num_steps
        weight.mul_(1 - self._learning_rate * decay)
        mean.lerp_(grad, 1 - BETA1)
        square.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
        spread = square.sqrt().div_(math.sqrt(1 - BETA2**step)).add_(EPSILON)
        weight.addcdiv_(mean, spread, value=-self._learning_rate / (1 - BETA1**step))

    def _noise(self, generator: torch.Generator, size: int) -> Tensor:
        """Returns the random numbers that are added below the kept bits, [size] in 0..65535. Their seed is the step's
        number, so that a resumed node rounds alike. Moments of all chunks share one draw, an element gets a new number
        in every step; weights, whose errors would add up in the model, get a draw for each chunk."""
        device = self._masters[0].device
        return torch.randint(1 << 16, (size,), dtype=torch.int32, device=device, generator=generator)

    @torch.no_grad()
    def _round_back(self) -> None:
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if master is not parameter:
                parameter.copy_(master)


def stochastic_round(x: Tensor, noise: Tensor) -> Tensor:
    """Rounds float32 [N] in place to bfloat16 values, up or down at random so that the mean is kept, and returns it.

    noise: int32 [N or more], uniform in 0..65535. A bfloat16 is the upper half of a float32, so the lower 16 bits are
    rounded.
    """
    bits = x.view(torch.int32)
    bits.add_(noise[: len(bits)]).bitwise_and_(-(1 << 16))
    return x
