"""The reply of a sampler in another process, here or elsewhere: lines of JSON, one per step and a last one."""

from __future__ import annotations

import msgspec


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


def misshapen(done: Done, num: int, max_new_tokens: int) -> str:
    """Returns what is wrong about the shape of `num` completions, in words; empty if nothing is."""
    shaped = len(done.ids) == len(done.logprobs) == num and all(
        0 < len(ids) == len(logprobs) <= max_new_tokens for ids, logprobs in zip(done.ids, done.logprobs, strict=True)
    )
    return "" if shaped else f"not {num} completions with a log-prob a token came"
