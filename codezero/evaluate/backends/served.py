"""What judges behind an HTTP API have in common: chats that keep their turns, and reading probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import msgspec

from codezero.evaluate.backends.base import Chat

NUM_ALTERNATIVES = 20
"""Most likely tokens asked for; the most that any of these protocols gives."""

_MARKERS = re.compile(r"<(?=[|\uff5c/]?[^\s<>]{1,60}>)|\[(?=/?[A-Z_]{3,}\])")
"""How markers begin that end turns in chat templates: <|im_end|>, </s>, <end_of_turn>, [INST], and full-width bars."""


class Alternative(msgspec.Struct):
    token: str
    logprob: float


class Position(msgspec.Struct):
    """A token of the answer, and those that could have been there, as OpenAI's and Ollama's protocols write it."""

    token: str
    logprob: float
    top_logprobs: list[Alternative] = []


def plain(chat: Chat) -> list[dict[str, str]]:
    """The chat with a space in whatever looks like a marker in its contents.

    Servers encode the rendered template as one text, in which a spelled-out marker would end the turn it stands in.
    """
    return [{**message, "content": _plain_text(message["content"])} for message in chat]


def _plain_text(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no JSON
    return _MARKERS.sub(lambda found: found[0] + " ", text)


def shares(positions: Iterable[Position], choices: Sequence[str]) -> tuple[float, ...] | None:
    """The probability of each choice at the first position, in any case and with any space around, summing to 1.

    None if there is no position, or none of the choices among its alternatives.
    """
    first = next(iter(positions), None)
    if first is None:
        return None
    known = {other.token: other.logprob for other in first.top_logprobs}
    known.setdefault(first.token, first.logprob)
    weights = [
        sum(math.exp(min(logprob, 0.0)) for token, logprob in known.items() if _same(token, choice))
        for choice in choices
    ]
    total = sum(weights)
    return tuple(weight / total for weight in weights) if total > 0.0 else None


def _same(token: str, choice: str) -> bool:
    return token.strip().casefold() == choice.casefold()
