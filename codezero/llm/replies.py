"""The reply of a sampler in another process, here or elsewhere: lines of JSON, one per step and a last one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from codezero.errors import RolloutError
from codezero.types import SampledTokens

TRIES = 3
"""The number of samplers that one call may start."""
ROUNDING = 1e-3
"""The largest log-prob, in nats, of a token that is certain."""
LEAST = -80.0
"""The smallest log-prob, in nats, of a sampled token: draws do not find less probable ones, and float32 holds the ratio
that it may lead to."""


logger = logging.getLogger(__name__)

T = TypeVar("T")


class SamplerFailed(Exception):
    """A sampler has ended, refused a request, or answered nonsense."""


class Progressed(msgspec.Struct, tag=True):
    """`done` of `total` steps are made."""

    done: int
    total: int


class Done(msgspec.Struct, tag=True, kw_only=True):
    ids: list[list[int]] = []
    """The token ids of the completions, G per prompt."""
    logprobs: list[list[float]] = []
    """The log-prob of each of these tokens, at the sampling temperature."""
    error: str = ""


Reply = Progressed | Done


def in_tries(once: Callable[[], T], failure: str, remedy: str) -> T:
    """Returns what `once` returns in the first of `TRIES` tries in which it does not raise SamplerFailed. Raises
    RolloutError: there is none; its text is of `failure`, the last reason, and `remedy`, what to do."""
    trouble = ""
    for left in range(TRIES - 1, -1, -1):
        try:
            return once()
        except SamplerFailed as error:
            trouble = ascii(str(error))[1:-1][:300]
        if left:
            logger.warning(
                "%s (%s) and starts again. Nothing has to be done, unless it happens again: %s",
                failure,
                trouble,
                remedy,
            )
    raise RolloutError(f"{failure} in {TRIES} tries ({trouble}): {remedy}")


def grouped(done: Done, prompts: Sequence[Sequence[int]], num_generations: int) -> list[list[SampledTokens]]:
    """Returns the attempts at each prompt, of which the reply has so many after each other."""
    rows = iter(zip(done.ids, done.logprobs, strict=True))
    return [
        [
            SampledTokens(prompt_ids=tuple(prompt), completion_ids=tuple(ids), logprobs=tuple(logprobs))
            for ids, logprobs in islice(rows, num_generations)
        ]
        for prompt in prompts
    ]


def misshapen(done: Done, num: int, max_new_tokens: int) -> str:
    """Returns what is wrong about the shape of `num` completions, in words; empty if nothing is."""
    shaped = len(done.ids) == len(done.logprobs) == num and all(
        0 < len(ids) == len(logprobs) <= max_new_tokens for ids, logprobs in zip(done.ids, done.logprobs, strict=True)
    )
    return "" if shaped else f"not {num} completions with a log-prob a token came"


def implausible(done: Done, max_new_tokens: int, end_ids: Collection[int], vocabulary: int) -> str:
    """Returns what sampling cannot have given in completions of the right shape, in words; empty if nothing."""
    if any(not 0 <= id_ < vocabulary for ids in done.ids for id_ in ids):
        return "it sent numbers that are no tokens"
    ends = set(end_ids)
    if any(not ends.isdisjoint(ids[:-1]) or (len(ids) < max_new_tokens and ids[-1] not in ends) for ids in done.ids):
        return "its completions do not end with the first end token"
    if any(not LEAST <= logprob <= ROUNDING for logprobs in done.logprobs for logprob in logprobs):
        return f"it sent log-probs above 0 or below {LEAST:g}"
    return ""
