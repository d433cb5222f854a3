"""Samples G completions of each prompt, as one batch, with every prompt prefilled once.

    prompts [N] ──prefill once──► left-padded cache [N, P] ──repeat each row G times──► cache [N·G, P] ──decode──►

Ended rows are removed from the batch when they are an eighth of it. All sampled ids are kept exactly, with the end
token. On an accelerator the shapes of a step stay the same, so that it can be replayed, until half of many rows have
ended, and the host reads what was drawn every 16 steps only; what a row has drawn after its end token is thrown away.
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
from codezero.llm.padding import padded
from codezero.llm.recorded import Recorded
from codezero.types import SampledTokens

IN_STEP = frozenset({"cpu"})
"""The types of devices that compute in step with the host, so that it waits for nothing when it reads a number."""
READ_STEPS = 16
"""The number of steps between two waits for an accelerator."""
ENDED_SHARE, ENDED_SHARE_FIXED = 1 / 8, 1 / 2
"""The share of a batch that has ended from which on it is removed, which costs a copy of the cache, and where shapes
are fixed a new recording too."""
FEW_ROWS = 64
"""The number of rows for which a step takes an accelerator about as long as for a single one."""
PROMPT_TOKENS = 8192
"""The number of tokens of prompts, with their padding, that an accelerator reads at once."""
MASK_STEP = 8
"""A mask's length is a multiple of this, as torch's attention on an NVIDIA GPU wants it."""
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

    def draw_seed(self) -> int:
        """Returns a number from the generator, which is then in another state."""
        device = self.generator.device if self.generator else None
        return int(torch.randint(2**62, (1,), generator=self.generator, device=device))


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
    num_steps = request.params.max_new_tokens
    decoder = (_FixedDecoder if _has_fixed_shapes(model) else _Decoder)(model, request)
    with onednn.packed_weights(model), decoding.grouped_queries(model):
        for step in range(num_steps):
            if not decoder.advance(last=step + 1 == num_steps):
                break
            if request.on_step is not None:
                request.on_step(step + 1, num_steps)
    rows, size = decoder.rows, request.num_generations
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _has_fixed_shapes(model: Any) -> bool:
    """Returns True if decoding is to wait for nothing. Only torch's attention takes the mask of such a step."""
    is_ahead = model.device.type not in IN_STEP
    return is_ahead and has_plain_cache(model) and model.config._attn_implementation == "sdpa"


class _Decoder:
    """The state of one batched decode: a cache, the rows still running, and what all rows have sampled."""

    def __init__(self, model: Any, request: SampleRequest) -> None:
        self.model, self.params = model, request.params
        self.device, self.end_ids = model.device, frozenset(request.end_ids)
        self.read_steps = 1 if self.device.type in IN_STEP else READ_STEPS
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
        most = width + self.params.max_new_tokens
        # A CPU would take as long for padding as for tokens; an accelerator wants many prompts at once.
        is_plain = has_plain_cache(self.model)
        if self.device.type in IN_STEP and is_plain:
            logits = self._read_each(prompts, most)
        else:
            size = max(1, PROMPT_TOKENS // width) if is_plain else len(prompts)
            logits = self._read_together([prompts[i : i + size] for i in range(0, len(prompts), size)], pad_id, most)
        self.cache.batch_repeat_interleave(num_generations)
        mask = (torch.arange(width) >= starts).long().to(self.device)  # [N, P]
        self.mask = mask.repeat_interleave(num_generations, dim=0)  # [B, P]
        self.positions = self.mask.sum(-1, keepdim=True)  # [B, 1], position of the next token
        self.logits = logits.repeat_interleave(num_generations, dim=0)  # [B, V]

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

    def _read_together(self, batches: Sequence[Sequence[Sequence[int]]], pad_id: int, most: int) -> Tensor:
        """Fills the cache, a batch of prompts in one pass. Returns the logits of their next tokens [N, V]."""
        caches, logits = [], []
        for prompts in batches:
            ids, mask = padded(prompts, pad_id, left=True)
            self.cache = decoding.make_cache(self.model, most)
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            logits.append(self._forward(*(x.to(self.device) for x in (ids, mask, positions))))
            caches.append(self.cache)
        if len(caches) > 1:
            self.cache = decoding.left_padded(caches, most)
        return torch.cat(logits)

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
            if not self._take(torch.stack(self.unread)) or last:
                return False
            self.unread.clear()
            if (running := self._running(ENDED_SHARE)) is not None:
                self._keep(running)
                tokens = tokens[running]
        self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=1)
        self.logits = self._forward(tokens[:, None], self.mask, self.positions)
        self.positions = self.positions + 1
        return True

    def _take(self, drawn: Tensor) -> bool:
        """Takes what was drawn [steps, 2, rows] from the device, in one copy. Returns True if any row still runs."""
        there = drawn.cpu()
        for tokens, logprobs in zip(there[:, 0].tolist(), there[:, 1].view(torch.float32).tolist(), strict=True):
            for i, row in enumerate(self.active):
                if row >= 0:
                    self.ids[row].append(tokens[i])
                    self.logprobs[row].append(logprobs[i])
                    if tokens[i] in self.end_ids:
                        self.active[i] = -1
        return any(row >= 0 for row in self.active)

    def _running(self, share: float, few: int = 0) -> Tensor | None:
        """Returns the rows of the cache that still run, or None unless such a share of more than a few has ended."""
        running = [i for i, row in enumerate(self.active) if row >= 0]
        is_full = len(self.active) <= few or len(running) > (1 - share) * len(self.active)
        return None if is_full else torch.tensor(running, device=self.device)

    def _keep(self, rows: Tensor) -> None:
        self.cache.batch_select_indices(rows)
        self.mask, self.positions, self.uniforms = self.mask[rows], self.positions[rows], self.uniforms[rows]
        self.active = [row for row in self.active if row >= 0]

    @property
    def rows(self) -> list[SampledTokens]:
        return [
            SampledTokens(prompt_ids=prompt, completion_ids=tuple(ids), logprobs=tuple(logprobs))
            for prompt, ids, logprobs in zip(self.prompts, self.ids, self.logprobs, strict=True)
        ]


class _FixedDecoder(_Decoder):
    """A decode whose step starts the same kernels on the same tensors each time, and waits for nothing."""

    def __init__(self, model: Any, request: SampleRequest) -> None:
        super().__init__(model, request)
        width = self.mask.shape[-1]
        most = -(-(width + self.params.max_new_tokens) // MASK_STEP) * MASK_STEP
        self.at = torch.zeros(1, dtype=torch.long, device=self.device)  # the next step
        self.place = self.at + width  # of its token in the cache
        # A mask of two dimensions would make transformers look for padding in it at each step, and wait for the answer.
        self.mask = torch.nn.functional.pad(self.mask, (0, most - width)).bool()[:, None, None]  # [B, 1, 1, most]
        self.cache = decoding.fixed(self.cache, most, self.place)
        self._settle()

    def _settle(self) -> None:
        self.drawn = torch.zeros(READ_STEPS, 2, len(self.active), dtype=torch.int32, device=self.device)
        self.recorded = Recorded(self.model, self.device)

    def _run(self) -> None:
        tokens, logprobs = draw(self.logits, self.params, self.uniforms.index_select(1, self.at))
        bits = torch.stack([tokens.int(), logprobs.view(torch.int32)])
        self.drawn.index_copy_(0, self.at % READ_STEPS, bits[None])
        self.mask.index_fill_(-1, self.place, True)
        self.logits.copy_(self._forward(tokens[:, None], self.mask, self.positions))
        for moving in (self.at, self.place, self.positions):
            moving += 1

    def advance(self, *, last: bool) -> bool:
        self.recorded(self._run)
        self.step += 1
        if last or self.step % READ_STEPS == 0:
            if not self._take(self.drawn[: (self.step - 1) % READ_STEPS + 1]) or last:
                return False
            if (running := self._running(ENDED_SHARE_FIXED, FEW_ROWS)) is not None:
                self._keep(running)
        return True

    def _keep(self, rows: Tensor) -> None:
        super()._keep(rows)
        self.logits = self.logits[rows]
        self._settle()


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
