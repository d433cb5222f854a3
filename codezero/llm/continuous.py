"""Samples with transformers' continuous batching, on the policy's own weights: a paged cache, CUDA graphs on a GPU."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig

from codezero.errors import RolloutError
from codezero.llm.device import is_out_of_memory
from codezero.llm.logprobs import causal_lm
from codezero.llm.sample import SampleRequest, StepCallback
from codezero.types import SampledTokens

PAGE_TOKENS = 64
"""Tokens of a page of the cache; an attempt leaves half of its last one empty on average."""
PREFILL_TOKENS = 1024
"""The most prompt tokens that are read in a step."""
LOOK_S = 1.0
"""Seconds between two looks at whether the thread that samples still runs."""
_WHO, _ELSE = "transformers' continuous batching", "set rollout.engine=transformers"

# Its logger writes to stderr by itself, over a terminal's view; now what it says is in the node's log.
_theirs = logging.getLogger("ContinuousBatchingLogger")
_theirs.handlers.clear()
_theirs.propagate = True


@torch.no_grad()
def sample_groups(model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
    """Samples as `llm.sample.sample_groups` does, except that log-probs are those after top-p and top-k. Equal states
    of the generator give equal rollouts. `on_step` is called as attempts end, with their share of the steps.

    Raises RolloutError: it cannot start, or its thread has ended early. RuntimeError: the accelerator is out of memory.
    """
    prompts, params = request.prompts, request.params
    if not prompts:
        return []
    each = request.num_generations if params.temperature > 0 else 1  # greedy attempts are the same
    asked = GenerationConfig(
        max_new_tokens=params.max_new_tokens,
        num_return_sequences=each,
        do_sample=params.temperature > 0,
        temperature=params.temperature or 1.0,
        top_p=params.top_p,
        top_k=params.top_k,
        eos_token_id=list(request.end_ids) or -1,
        pad_token_id=request.pad_id,
    )
    rows = len(prompts) * each
    blocks = rows * pages(max(map(len, prompts)) + params.max_new_tokens)
    batching = ContinuousBatchingConfig(
        page_size=PAGE_TOKENS,
        num_blocks=blocks,
        max_batch_tokens=max(rows, PREFILL_TOKENS),
        max_requests_per_batch=rows,
        max_blocks_per_request=0,
        safety_margin=0.0,  # the blocks are enough for all
        use_cuda_graph=model.device.type == "cuda",
        auto_switch_to_flash=False,  # the learner would compute with another attention
        return_logprobs=True,
        seed=request.draw_seed(2**31),
    )
    base = causal_lm(model)  # a peft model's has its adapters
    with _refusing():
        manager = base.init_continuous_batching(generation_config=asked, continuous_batching_config=batching)
    # All are there before its thread starts, so that nothing depends on when it takes them up.
    names = manager.add_requests(inputs=[list(prompt) for prompt in prompts])
    try:
        with _refusing():
            manager.warmup()
        manager.start()
        found = _results(manager, rows, params.max_new_tokens, request.on_step)
    finally:
        manager.stop(block=True, hard_stop=True)
        manager.destroy()
    return [found[name] * (request.num_generations // each) for name in names]


@contextmanager
def _refusing() -> Iterator[None]:
    """Turns the errors of transformers with a model or a device that it cannot sample with into RolloutError, and that
    of its own estimate of memory into the accelerator's."""
    try:
        yield
    except MemoryError as error:
        raise torch.OutOfMemoryError(f"{_WHO}: {error}; {_ELSE}") from error
    except (RuntimeError, ValueError, TypeError, AttributeError, AssertionError, ImportError) as error:
        if is_out_of_memory(error):
            raise
        raise RolloutError(f"{_WHO}: {str(error).strip() or type(error).__name__}; {_ELSE}") from error


def _results(
    manager: Any, rows: int, max_new_tokens: int, on_step: StepCallback | None
) -> dict[str, list[SampledTokens]]:
    """Returns the attempts at each prompt, by the name of its request."""
    found: dict[str, list[SampledTokens]] = {}
    num_done = 0
    while num_done < rows:
        result = manager.get_result(timeout=LOOK_S)
        if result is None and not manager.is_running():
            raise RolloutError(f"{_WHO} ended after {num_done} of {rows} attempts; {_ELSE}, and please report it")
        if result is None or not result.is_finished():
            continue
        if result.error is not None:
            kind = torch.OutOfMemoryError if "out of memory" in result.error else RolloutError
            raise kind(f"{_WHO}: {result.error}; {_ELSE}")
        name = result.request_id.partition("__child#")[0]  # of the attempts at a prompt all but one are children
        tokens = SampledTokens(
            prompt_ids=tuple(result.prompt_ids),
            completion_ids=tuple(result.generated_tokens),
            logprobs=tuple(result.logprobs),
        )
        found.setdefault(name, []).append(tokens)
        num_done += 1
        if on_step is not None:
            on_step(max_new_tokens * num_done // rows, max_new_tokens)
    return found


def pages(num_tokens: int) -> int:
    """Returns the pages of an attempt of so many tokens, prompt included. One more is taken before the last is full."""
    return -(-num_tokens // PAGE_TOKENS) + 1
