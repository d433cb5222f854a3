"""Requests for servers with OpenAI's chat protocol: chats whose texts cannot end their turns, and no thinking."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from codezero.config import EvaluatorConfig, ProposerConfig
from codezero.llm.client import JsonClient, Purpose

DEFAULT_URL = "http://127.0.0.1:8000/v1"
"""vLLM's default URL."""
NO_THINKING: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
"""Request fields that vLLM, SGLang and llama.cpp pass to the chat template. Qwen3's then leaves out the thinking;
others ignore them."""

_MARKERS = re.compile(r"<(?=[|\uff5c/]?[^\s<>]{1,60}>)|\[(?=/?[A-Z_]{3,}\])")
"""The first characters of markers that end turns in chat templates: <|im_end|>, </s>, <end_of_turn>, [INST], and those
with full-width bars."""


def client_of(config: EvaluatorConfig | ProposerConfig, purpose: Purpose) -> JsonClient:
    """Returns the client of the server that the settings name, with the key from the environment. Raises
    `purpose.error`: URL, key or model name cannot be used."""
    if config.model == "auto":
        raise purpose.error(f"{purpose.section}.model=auto names no model of a server: give the name it serves")
    return JsonClient(
        config.url or DEFAULT_URL,
        purpose,
        timeout_s=config.timeout_s,
        retries=config.retries,
        at_once=config.batch_size,
        key=os.environ.get(config.api_key_env, "").strip(),
        key_env=config.api_key_env,
    )


def plain(chat: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Returns the chat with a space inserted into every text in its contents that looks like a marker.

    Servers encode the rendered template as one text, in which a marker in a message would end that message's turn.
    """
    return [{**message, "content": _plain_text(message["content"])} for message in chat]


def _plain_text(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be sent as JSON
    return _MARKERS.sub(lambda found: found[0] + " ", text)
