"""What every server that speaks OpenAI's chat protocol is sent: chats that keep their turns, and no thinking aloud."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

DEFAULT_URL = "http://127.0.0.1:8000/v1"
"""Where vLLM listens unless told otherwise."""
NO_THINKING: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
"""What vLLM, SGLang and llama.cpp hand to the chat template; Qwen3's then leaves out the thinking, others ignore it."""

_MARKERS = re.compile(r"<(?=[|\uff5c/]?[^\s<>]{1,60}>)|\[(?=/?[A-Z_]{3,}\])")
"""How markers begin that end turns in chat templates: <|im_end|>, </s>, <end_of_turn>, [INST], and full-width bars."""


def plain(chat: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The chat with a space in whatever looks like a marker in its contents.

    Servers encode the rendered template as one text, in which a spelled-out marker would end the turn it stands in.
    """
    return [{**message, "content": _plain_text(message["content"])} for message in chat]


def _plain_text(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no JSON
    return _MARKERS.sub(lambda found: found[0] + " ", text)
