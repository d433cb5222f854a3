"""The process that samples with llama.cpp. It reads a line of JSON (`Request`), and writes a reply (`llm.replies`).

It lives for one call, so that its memory is free while the node learns, and each call loads the current adapter.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from codezero.llm.llama_library import LlamaContext
from codezero.llm.replies import Done, Progressed, Reply
from codezero.runtime import kernel

MAX_ROWS = 64
"""The most completions sampled at a time, in whole groups. More at a time do not save time per token on a CPU."""


class Request(msgspec.Struct, kw_only=True):
    base: str
    """The path of the GGUF file with the base weights."""
    adapter: str | None
    prompts: list[list[int]]
    num_generations: int
    max_new_tokens: int
    temperature: float
    top_p: float
    top_k: int
    end_ids: list[int]
    seed: int
    threads: int
    memory_bytes: int
    """The most memory beside the mapped base, in bytes."""


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # so that output of a library goes to stderr
    with suppress(OSError):  # not Linux: there the process ends at the first step that nobody reads
        kernel.die_with_parent()

    def say(message: Reply) -> None:
        rest = memoryview(msgspec.json.encode(message) + b"\n")
        while rest:
            rest = rest[os.write(out, rest) :]

    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    for name, most in (("DATA", request.memory_bytes), ("CORE", 0)):
        with suppress(ValueError, OSError):  # macOS
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    try:
        done = sample(request, say)
    except (ImportError, OSError, AttributeError, RuntimeError, MemoryError) as error:
        done = Done(error=str(error) or type(error).__name__)
    say(done)
    os._exit(0)


def sample(request: Request, say: Callable[[Reply], None]) -> Done:
    """Samples all completions, at most `MAX_ROWS` at a time, or those of one prompt if these are more."""
    per_chunk = max(1, MAX_ROWS // request.num_generations)
    chunks = [request.prompts[i : i + per_chunk] for i in range(0, len(request.prompts), per_chunk)]
    context = LlamaContext(
        Path(request.base),
        Path(request.adapter) if request.adapter else None,
        len(chunks[0]) * request.num_generations,
        max(map(len, request.prompts)) + request.max_new_tokens,
        request.threads,
    )
    random = np.random.default_rng(request.seed)
    done = Done()
    for number, prompts in enumerate(chunks):
        tell = partial(_tell, say, number * request.max_new_tokens, len(chunks) * request.max_new_tokens)
        rows = _Rows(context, prompts, request, random, on_batch=partial(tell, 0))
        for step in range(request.max_new_tokens):
            if not rows.advance(last=step + 1 == request.max_new_tokens):
                break
            tell(step + 1)
        done.ids += rows.ids
        done.logprobs += rows.logprobs
        context.clear()
    return done


def _tell(say: Callable[[Reply], None], before: int, total: int, steps: int) -> None:
    say(Progressed(before + steps, total))


class _Rows:
    """The unfinished completions: row r is sequence r of the context."""

    def __init__(
        self,
        context: LlamaContext,
        prompts: Sequence[list[int]],
        request: Request,
        random: np.random.Generator,
        on_batch: Callable[[], None],
    ) -> None:
        """Reads the prompts, and calls `on_batch` now and then, since many or long ones take minutes."""
        self._context, self._request, self._random = context, request, random
        size = request.num_generations
        num = len(prompts) * size
        self.ids: list[list[int]] = [[] for _ in range(num)]
        self.logprobs: list[list[float]] = [[] for _ in range(num)]
        self._positions = [len(prompts[row // size]) for row in range(num)]
        self._active = list(range(num))
        first = []
        for number, prompt in enumerate(prompts):
            first.append(context.read(prompt, number * size, on_batch))
            for row in range(number * size + 1, (number + 1) * size):
                context.share(number * size, row)
        self._logits = np.repeat(np.stack(first), size, axis=0)

    def advance(self, *, last: bool) -> bool:
        """Draws one token for every running row. Returns True if any row is still running."""
        tokens, logprobs = draw(self._logits, self._request, self._random)
        for row, token, logprob in zip(self._active, tokens, logprobs, strict=True):
            self.ids[row].append(token)
            self.logprobs[row].append(logprob)
        going = [i for i, token in enumerate(tokens) if token not in self._request.end_ids]
        self._active = [self._active[i] for i in going]
        if last or not going:
            return False
        positions = [self._positions[row] + len(self.ids[row]) - 1 for row in self._active]
        self._logits = self._context.advance([tokens[i] for i in going], positions, self._active)
        return True


def draw(logits: NDArray[np.float32], request: Request, random: np.random.Generator) -> tuple[list[int], list[float]]:
    """Draws one token per row of logits [B, V]; returns the tokens and their log-probs at the sampling temperature,
    before top-p and top-k. It is `llm.draw.draw` without torch, whose import would take seconds in each round."""
    rows = np.arange(len(logits))
    if request.temperature > 0:
        logits = logits / np.float32(request.temperature)
    logits = logits - logits.max(axis=1, keepdims=True)
    probs = np.exp(logits)
    norms = probs.sum(axis=1, dtype=np.float64)
    if request.temperature == 0:
        tokens = logits.argmax(axis=1)
    else:
        cdf = np.cumsum(_filter(probs, request), axis=1, dtype=np.float64)
        wanted = random.random(len(cdf)) * cdf[:, -1]
        found = [np.searchsorted(row, u, side="right") for row, u in zip(cdf, wanted, strict=True)]
        tokens = np.minimum(found, logits.shape[1] - 1)
    return tokens.tolist(), (logits[rows, tokens] - np.log(norms)).tolist()


def _filter(probs: NDArray[np.float32], request: Request) -> NDArray[np.float32]:
    """Returns the probabilities [B, V] with all outside the top k and outside the top-p nucleus set to 0."""
    if 0 < request.top_k < probs.shape[1]:
        least = np.partition(probs, -request.top_k, axis=1)[:, -request.top_k, None]
        probs = np.where(probs >= least, probs, np.float32(0))
    if request.top_p < 1:
        order = np.argsort(-probs, axis=1, kind="stable")
        ordered = np.take_along_axis(probs, order, axis=1)
        before = np.cumsum(ordered, axis=1) - ordered  # the mass of likelier tokens: the first is always kept
        kept = np.where(before < request.top_p * ordered.sum(axis=1, keepdims=True), ordered, np.float32(0))
        probs = np.empty_like(probs)
        np.put_along_axis(probs, order, kept, axis=1)
    return probs
