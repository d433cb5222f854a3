"""Samples G completions of each prompt, as one batch, with every prompt prefilled once.

    prompts [N] ──prefill once──► left-padded cache [N, P] ──repeat each row G times──► cache [N·G, P] ──decode──►

Ended rows are removed from the batch when they are an eighth of it. All sampled ids are kept exactly, with the end
token. On an accelerator the host reads what was drawn every 16 steps only, so that it can be ahead of the device; what
a row has drawn after its end token is thrown away.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from codezero.llm import decoding, onednn
from codezero.llm.draw import SamplingParams, draw
from codezero.llm.logprobs import has_plain_cache
from codezero.types import SampledTokens

READ_STEPS = 16
"""The number of steps between two waits for an accelerator. Rows that have ended meanwhile cost at most 15 steps."""
ENDED_SHARE = 1 / 8
"""The share of a batch that has ended from which on it is removed, which costs a copy of the cache."""
StepCallback = Callable[[int, int], None]
"""A function `on_step(steps done, most steps)` that is called after each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """Prompts of ids, and how a rollout engine is to complete each of them."""

    prompts: Sequence[Sequence[int]]
    num_generations: int
    """The number of completions of each prompt."""
    params: SamplingParams
    end_ids: Sequence[int]
    """The tokens that end a completion."""
    pad_id: int
    generator: torch.Generator | None = None
    """The source of random numbers; None for torch's own."""
    on_step: StepCallback | None = None

    def draw_seed(self, end: int = 2**62) -> int:
        """Returns a number below `end` from the generator, which is then in another state."""
        device = self.generator.device if self.generator else None
        return int(torch.randint(end, (1,), generator=self.generator, device=device))


SampleGroups = Callable[[Any, SampleRequest], list[list[SampledTokens]]]
"""A rollout engine: a function with the interface of `sample_groups`."""


@torch.no_grad()
def sample_groups(model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
    """Draws `num_generations` completions for each of N prompts. Returns N lists of G.

    A completion ends with its first token of `end_ids`, which is kept, or is cut off at `params.max_new_tokens`.
    Log-probs are those of the model's distribution at the sampling temperature, before top-p and top-k.
    """
    if not request.prompts:
        return []
    model.eval()
    decoder, num_steps = _Decoder(model, request), request.params.max_new_tokens
    with onednn.packed_weights(model), decoding.grouped_queries(model):
        for step in range(num_steps):
            if not decoder.advance(last=step + 1 == num_steps):
                break
            if request.on_step is not None:
                request.on_step(step + 1, num_steps)
    rows, size = decoder.rows, request.num_generations
    return [rows[i : i + size] for i in range(0, len(rows), size)]


class _Decoder:
    """The state of one batched decode: a cache, the rows still running, and what all rows have sampled."""

    def __init__(self, model: Any, request: SampleRequest) -> None:
        self.model, self.params = model, request.params
        self.device, self.end_ids = model.device, frozenset(request.end_ids)
        on_cpu = self.device.type == "cpu"
        self.read_steps = 1 if on_cpu else READ_STEPS
        # A mask of two dimensions makes transformers look for padding in it at each step, and wait for the answer.
        self.expands_mask = not on_cpu and has_plain_cache(model)
        self.prompts = [tuple(prompt) for prompt in request.prompts for _ in range(request.num_generations)]
        self.ids: list[list[int]] = [[] for _ in self.prompts]
        self.logprobs: list[list[float]] = [[] for _ in self.prompts]
        self.active = list(range(len(self.prompts)))  # rows of the cache -> rows of the result, -1 for ended ones
        self.unread: list[Tensor] = []  # the ids and the bits of the log-probs of each step, [2, rows of the cache]
        # Drawn at once, so that what a row draws does not depend on when others end: [rows of the cache, steps]
        self.uniforms = torch.zeros(len(self.prompts), self.params.max_new_tokens, device=self.device)
        if self.params.temperature > 0:
            self.uniforms.uniform_(generator=request.generator)
        self.step = 0
        self._prefill(request.prompts, request.num_generations, request.pad_id)

    def _prefill(self, prompts: Sequence[Sequence[int]], num_generations: int, pad_id: int) -> None:
        width = max(len(prompt) for prompt in prompts)
        starts = torch.tensor([[width - len(prompt)] for prompt in prompts])
        mask = (torch.arange(width) >= starts).long().to(self.device)  # [N, P]
        most = width + self.params.max_new_tokens
        # A CPU would take as long for padding as for tokens; an accelerator wants all prompts at once.
        if self.device.type == "cpu" and has_plain_cache(self.model):
            logits = self._read_each(prompts, most)
        else:
            logits = self._read_together(prompts, mask, pad_id, most)
        self.cache.batch_repeat_interleave(num_generations)
        self.mask = mask.repeat_interleave(num_generations, dim=0)  # [B, P]
        self.positions = self.mask.sum(-1, keepdim=True)  # [B, 1], position of the next token
        self.logits = logits.repeat_interleave(num_generations, dim=0)  # [B, V]
        if self.expands_mask:
            self.mask = self.mask[:, None, None].bool()  # [B, 1, 1, P]

    def _read_each(self, prompts: Sequence[Sequence[int]], most: int) -> Tensor:
        """Fills the cache, a prompt at a time, after their common beginning. Returns the logits of their next tokens
        [N, V]."""
        common = num_common(prompts) if len(prompts) > 1 else 0
        self.cache = beginning = decoding.make_cache(self.model, most)
        if common:
            self._read(prompts[0][:common])
        caches, logits = [], []
        for prompt in prompts:
            self.cache = decoding.copied(beginning, most)
            logits.append(self._read(prompt[common:]))
            caches.append(self.cache)
        self.cache = decoding.left_padded(caches, most)
        return torch.cat(logits)

    def _read(self, ids: Sequence[int]) -> Tensor:
        """Appends tokens to the cache of a single row. Returns the logits of the next token [1, V]."""
        there = self.cache.get_seq_length()
        mask = torch.ones(1, there + len(ids), dtype=torch.long)
        return self._forward(torch.tensor([ids]), mask, torch.arange(there, there + len(ids))[None])

    def _read_together(self, prompts: Sequence[Sequence[int]], mask: Tensor, pad_id: int, most: int) -> Tensor:
        """Fills the cache with all prompts in one pass. Returns the logits of their next tokens [N, V]."""
        ids = torch.full(mask.shape, pad_id)
        for row, prompt in enumerate(prompts):
            ids[row, mask.shape[1] - len(prompt) :] = torch.tensor(prompt)
        self.cache = decoding.make_cache(self.model, most)
        return self._forward(ids.to(self.device), mask, (mask.cumsum(-1) - 1).clamp(min=0))

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = output.logits[:, -1]
        return logits

    def advance(self, *, last: bool) -> bool:
        """Draws one token for every running row. Returns True if any row is still running."""
        tokens, logprobs = draw(self.logits, self.params, self.uniforms[:, self.step, None])
        self.step += 1
        self.unread.append(torch.stack([tokens.int(), logprobs.view(torch.int32)]))
        if last or len(self.unread) == self.read_steps:
            self._take()
            num_running = sum(row >= 0 for row in self.active)
            if num_running == 0 or last:
                return False
            if num_running <= (1 - ENDED_SHARE) * len(self.active):
                tokens = self._compact(tokens)
        self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=1)
        self.logits = self._forward(tokens[:, None], self.mask, self.positions)
        self.positions = self.positions + 1
        return True

    def _take(self) -> None:
        """Takes what was drawn from the device, in one copy."""
        drawn = torch.stack(self.unread).cpu()  # [steps, 2, rows]
        self.unread.clear()
        for tokens, logprobs in zip(drawn[:, 0].tolist(), drawn[:, 1].view(torch.float32).tolist(), strict=True):
            for i, row in enumerate(self.active):
                if row >= 0:
                    self.ids[row].append(tokens[i])
                    self.logprobs[row].append(logprobs[i])
                    if tokens[i] in self.end_ids:
                        self.active[i] = -1

    def _compact(self, tokens: Tensor) -> Tensor:
        running = [i for i, row in enumerate(self.active) if row >= 0]
        keep = torch.tensor(running, device=self.device)
        self.cache.batch_select_indices(keep)
        self.mask, self.positions, self.uniforms = self.mask[keep], self.positions[keep], self.uniforms[keep]
        self.active = [self.active[i] for i in running]
        return tokens[keep]

    @property
    def rows(self) -> list[SampledTokens]:
        return [
            SampledTokens(prompt_ids=prompt, completion_ids=tuple(ids), logprobs=tuple(logprobs))
            for prompt, ids, logprobs in zip(self.prompts, self.ids, self.logprobs, strict=True)
        ]


def num_common(prompts: Sequence[Sequence[int]]) -> int:
    """Returns the number of tokens that all prompts begin with, less than the length of any."""
    most = min(map(len, prompts)) - 1
    columns = islice(zip(*prompts, strict=False), most)
    return next((place for place, tokens in enumerate(columns) if len(set(tokens)) > 1), most)


def restore_generator(generator: torch.Generator, state: Tensor) -> None:
    """Continues from `state`. A state of another kind of device, which has another length, only gives a new seed."""
    if len(state) == len(generator.get_state()):
        generator.set_state(state)
    else:
        generator.manual_seed(zlib.crc32(state.numpy().tobytes()))
