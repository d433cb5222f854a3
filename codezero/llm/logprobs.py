"""Log-probabilities of completions under a model, with gradients, in little memory and time.

Three things save memory or time against a plain forward pass, and change the result by rounding only:

- The LM head runs on completion tokens only, some hundred rows at a time, so that logits of a whole batch never exist.
  `_HeadLogprobs` recomputes each chunk but the last in its backward pass and adds the head's gradient in place. On two
  cores with 151,936 x 896 weights and 2,048 tokens this took 31 CPU s and 0.3 GiB (with all chunks recomputed), against
  48 CPU s and 1.1 GiB for `torch.utils.checkpoint`, which makes a weight-sized gradient for every chunk.
- The gradients of head and embedding, with a row per vocabulary entry, are added in place, without temporaries of that
  size (`gradient_of`); for tied weights of 151,936 x 896 that saves 1 GiB.
- All completions of one prompt share one pass over that prompt (`CompletionScorer`): with 150 prompt and 4 x 256
  completion tokens a sixth to a quarter less time on a 0.5B model.

Completions are padded on the right only and begin at the prompt's end, so that the causal mask alone hides padding from
all real tokens and positions count from 0; no attention mask is needed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers.cache_utils import DynamicCache, DynamicLayer

from codezero.errors import ModelError
from codezero.llm import onednn

CHUNK_TOKENS, ACCELERATOR_CHUNK_TOKENS = 256, 1024
"""The number of rows of logits computed at a time: 148 MiB with 151,936 float32 entries per row. On a CPU more are
hardly faster; an accelerator reads the head's weights anew for each chunk."""
OUTER_ROWS = 16_384
"""The number of rows of the head's gradient computed at a time before they are added: 56 MiB at a width of 896."""


class CompletionScorer:
    """The log-probabilities of completions of one prompt, in any number of micro-batches.

    The prompt is run once; the completions continue from its cache. Each micro-batch can be differentiated on its own:
    its backward pass ends at the cache and leaves gradients there. `backward` then runs the prompt again and sends the
    gradients' sum through it, so that activations of prompt and completions are not in memory at the same time.
    Models whose layers have more than a plain key-value cache, and gradient checkpointing (`share_prompt=False`), which
    cannot write one, run the prompt again in front of every completion; the result is the same. So do completions of
    different prompts in one batch, which accelerators want large.
    """

    def __init__(
        self,
        model: nn.Module,
        prompt_ids: Tensor,
        share_prompt: bool = True,
        lengths: Tensor | None = None,
        width: int = 0,
    ) -> None:
        """prompt_ids [P] with P >= 1, on the model's device. Gradients reach the prompt if they are enabled now.
        With `lengths` [B] these are the prompts [B, P] of B completions, right-padded with any id, and `width` is the
        largest number of tokens of a prompt with its completion."""
        self._lm = causal_lm(model)
        self._prompt_ids, self._lengths, self._width = prompt_ids, lengths, width - 1
        self._shared = share_prompt and lengths is None and has_plain_cache(model)
        self._inputs: list[Tensor] = []
        """The results of `run_prompt` that completions use, without an autograd graph."""
        if self._shared:
            with torch.no_grad():
                outputs = self.run_prompt()
            self._inputs = [x.requires_grad_(torch.is_grad_enabled()) for x in outputs]

    def logprobs(self, completion_ids: Tensor, mask: Tensor, temperature: float = 1.0) -> Tensor:
        """Returns log p(token | prompt and earlier tokens) at `temperature`, float32 [B, C]; 0 if the mask is False.

        completion_ids [B, C], right-padded with any id; mask [B, C], bool.
        """
        states = self._states_after_prompt(completion_ids) if self._shared else self._states_of_all(completion_ids)
        head = self._lm.get_output_embeddings()
        bias = getattr(head, "bias", None)
        rows = head_chunk(head.weight.device.type)
        kept: Tensor = _HeadLogprobs.apply(  # type: ignore[no-untyped-call]
            states[mask], head.weight, bias, completion_ids[mask], temperature, rows
        )
        return kept.new_zeros(mask.shape).masked_scatter(mask, kept)

    def backward(self) -> None:
        """Sends the gradients at the prompt's cache, which the micro-batches left, through the prompt. Call it once."""
        if all(leaf.grad is None for leaf in self._inputs):
            return
        pairs = zip(self.run_prompt(), self._inputs, strict=True)
        used = [(x, leaf.grad) for x, leaf in pairs if x.requires_grad and leaf.grad is not None]
        torch.autograd.backward([x for x, _ in used], [grad for _, grad in used])

    def run_prompt(self) -> list[Tensor]:
        """Returns the prompt's last hidden state [1, H], then keys and values by layer."""
        cache = DynamicCache(config=self._lm.config)
        states = self._lm.base_model(
            inputs_embeds=embed(self._lm, self._prompt_ids[None]), past_key_values=cache, use_cache=True
        )
        return [states.last_hidden_state[:, -1], *(x for layer in cache.layers for x in (layer.keys, layer.values))]

    def _states_after_prompt(self, completion_ids: Tensor) -> Tensor:
        num = completion_ids.shape[0]
        first, *keys_and_values = (x.expand(num, *x.shape[1:]) for x in self._inputs)
        if completion_ids.shape[1] == 1:
            return first[:, None]
        cache = DynamicCache(config=self._lm.config)
        for layer in range(len(keys_and_values) // 2):
            cache.update(keys_and_values[2 * layer], keys_and_values[2 * layer + 1], layer)
        # The last token of a completion is predicted only and is not an input.
        embedded = embed(self._lm, completion_ids[:, :-1])
        rest = self._lm.base_model(inputs_embeds=embedded, past_key_values=cache, use_cache=True)
        return torch.cat([first[:, None], rest.last_hidden_state], dim=1)  # [B, C, H]

    def _states_of_all(self, completion_ids: Tensor) -> Tensor:
        num, most = completion_ids.shape
        longest = self._prompt_ids.shape[-1]
        input_ids = torch.cat([self._prompt_ids.expand(num, -1), completion_ids[:, :-1]], dim=1)  # [B, P + C - 1]
        if self._lengths is not None:  # closes the gaps between shorter prompts and their completions
            place = torch.arange(self._width, device=input_ids.device)
            gaps = longest - self._lengths[:, None]
            moved = torch.where(place < longest - gaps, place, place + gaps)
            input_ids = input_ids.gather(1, moved.clamp(max=input_ids.shape[1] - 1))
        states: Tensor = self._lm.base_model(
            inputs_embeds=embed(self._lm, input_ids), use_cache=False
        ).last_hidden_state
        if self._lengths is None:
            return states[:, longest - 1 :]  # [B, C, H]
        wanted = self._lengths[:, None] - 1 + torch.arange(most, device=input_ids.device)
        wanted = wanted.clamp(max=self._width - 1)  # where only padding is
        return states.gather(1, wanted[..., None].expand(-1, -1, states.shape[-1]))


def head_chunk(device_type: str) -> int:
    """Returns the number of rows of logits computed at a time on this type of device."""
    return CHUNK_TOKENS if device_type == "cpu" else ACCELERATOR_CHUNK_TOKENS


def causal_lm(model: nn.Module) -> Any:
    """Returns the transformers model inside a peft model, or the model itself."""
    get_base_model: Any = getattr(model, "get_base_model", None)
    return get_base_model() if get_base_model else model


def has_plain_cache(model: nn.Module) -> bool:
    """Returns True if every layer caches all keys and values: no sliding window, no recurrent state."""
    layers = DynamicCache(config=causal_lm(model).config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


@torch.no_grad()
def require_plain_head(model: nn.Module) -> None:
    """Raises ModelError unless the model's logits are exactly its head applied to its last hidden state.

    Some architectures then scale or cap logits; `CompletionScorer` would silently train another distribution.
    """
    lm = causal_lm(model)
    input_ids = torch.tensor([[0, 1]], device=lm.device)
    expected = lm(input_ids=input_ids, use_cache=False).logits.float()
    states = lm.base_model(input_ids=input_ids, use_cache=False).last_hidden_state
    found = lm.get_output_embeddings()(states).float()
    if not torch.allclose(found, expected, rtol=1e-2, atol=1e-2):
        raise ModelError(
            f"{type(lm).__name__} changes its logits after the LM head, which training does not support: "
            "choose another model.name, such as Qwen2.5-Coder-0.5B-Instruct"
        )


def gradient_of(weight: Tensor) -> Tensor:
    """Returns a leaf's gradient, zeros if it has none yet, for backward passes that add to it in place, as Megatron's
    gradient accumulation fusion does. Autograd would first make a separate tensor of every summand. Its precision is
    the weight's `grad_dtype`: a bfloat16 sum of many micro-batches would lose what is below 1 in 256 of it."""
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight, dtype=weight.grad_dtype)
    return weight.grad


def embed(lm: Any, ids: Tensor) -> Tensor:
    """Returns the input embeddings [..., H] of ids; their gradient is added in place (`gradient_of`)."""
    layer = lm.get_input_embeddings()
    if type(layer) is not nn.Embedding or layer.max_norm is not None or layer.scale_grad_by_freq:
        embedded: Tensor = layer(ids)
        return embedded
    found: Tensor = _Embedding.apply(ids, layer.weight, layer.padding_idx)  # type: ignore[no-untyped-call]
    return found


class _Embedding(torch.autograd.Function):
    """Rows of a matrix by id; the gradient of row i is the sum over the positions with id i, 0 for padding."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor, padding_idx: int | None) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.weight, ctx.padding_idx = weight, padding_idx
        return nn.functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (ids,) = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            rows, values = ids.flatten(), grad.reshape(-1, grad.shape[-1])
            if ctx.padding_idx is not None:
                values = values.masked_fill((rows == ctx.padding_idx)[:, None], 0.0)
            total = gradient_of(ctx.weight)
            total.index_add_(0, rows, values.to(total.dtype))
        return None, None, None


class _HeadLogprobs(torch.autograd.Function):
    """log softmax((states @ weight.T + bias) / temperature) at the targets, [N] float32, chunk by chunk.

    With logits z and the target's one-hot y, d log p / d z = (y - softmax(z / temperature)) / temperature.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, temperature: float, chunk: int
    ) -> Tensor:
        """Returns [N] of states [N, H], weight [V, H], bias [V] or None, targets [N]."""
        kept, norms = [], []
        for rows, wanted in zip(torch.split(states, chunk), torch.split(targets, chunk), strict=True):
            logits = _logits(rows, weight, bias, temperature)
            norms.append(torch.logsumexp(logits, dim=-1))
            kept.append(logits.gather(-1, wanted[:, None])[:, 0] - norms[-1])
        ctx.save_for_backward(states, bias, targets, torch.cat(norms))
        ctx.weight, ctx.temperature, ctx.chunk = weight, temperature, chunk
        ctx.logits = logits  # the last chunk's, on a CPU often the only one: backward need not recompute it
        return torch.cat(kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, bias, targets, norms = ctx.saved_tensors
        weight = ctx.weight
        needs_states, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        grad_states = torch.empty_like(states) if needs_states else None
        grad_weight = gradient_of(weight) if needs_weight else None
        grad_bias = torch.zeros_like(bias) if needs_bias else None
        for start in range(0, len(targets), ctx.chunk):
            rows = slice(start, start + ctx.chunk)
            scale = grad[rows, None] / ctx.temperature
            is_last = rows.stop >= len(targets)
            logits = ctx.logits if is_last else _logits(states[rows], weight, bias, ctx.temperature)
            grad_logits = logits.sub_(norms[rows, None]).exp_().mul_(-scale)
            grad_logits.scatter_add_(1, targets[rows, None], scale)
            grad_logits = grad_logits.to(weight.dtype)
            if grad_states is not None:
                grad_states[rows] = onednn.linear(grad_logits, weight.t())
            if grad_weight is not None:
                _add_outer(grad_weight, grad_logits, states[rows])
            if grad_bias is not None:
                grad_bias += grad_logits.sum(0)
        ctx.logits = None  # autograd may keep ctx for longer
        return grad_states, None, grad_bias, None, None, None


def _add_outer(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Adds leftᵀ right to total [V, H], for left [N, V] and right [N, H], without a temporary of the whole size."""
    if left.dtype == total.dtype and not onednn.takes(left):
        total.addmm_(left.T, right)
        return
    for start in range(0, len(total), OUTER_ROWS):
        part = slice(start, start + OUTER_ROWS)
        total[part] += onednn.linear(left[:, part].t(), right.t())


def _logits(states: Tensor, weight: Tensor, bias: Tensor | None, temperature: float) -> Tensor:
    logits = onednn.linear(states, weight, bias).float()
    return logits if temperature == 1.0 else logits.div_(temperature)
