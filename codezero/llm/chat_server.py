"""Models behind servers with OpenAI's chat protocol (vLLM, SGLang, llama.cpp's own, and others): chats whose texts
cannot end their turns, and no thinking."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec

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


class Alternative(msgspec.Struct):
    token: str
    logprob: float


class Position(msgspec.Struct):
    """A token of the answer and its alternatives, in the format of OpenAI's and Ollama's protocols."""

    token: str
    logprob: float
    top_logprobs: list[Alternative] = []


class _Logprobs(msgspec.Struct):
    content: list[Position] | None = None


class _Message(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    """An answer."""

    message: _Message
    logprobs: _Logprobs | None = None


class _Reply(msgspec.Struct):
    choices: list[Choice]


class ChatServer:
    """A model behind POST {url}/chat/completions."""

    def __init__(self, client: JsonClient, model: str) -> None:
        self._client, self._model, self._extra = client, model, NO_THINKING
        self.name = f"{model} at {client.place}"

    @classmethod
    def from_config(cls, config: EvaluatorConfig | ProposerConfig, purpose: Purpose) -> ChatServer:
        """Takes the key from the environment, and asks `batch_size` requests at once. Raises the purpose's error: URL,
        key or model name is not usable."""
        if config.model == "auto":
            raise purpose.error(f"{purpose.section}.model=auto names no model of a server: give the name it serves")
        client = JsonClient(
            config.url or DEFAULT_URL,
            purpose,
            timeout_s=config.timeout_s,
            retries=config.retries,
            at_once=config.batch_size,
            key=os.environ.get(config.api_key_env, "").strip(),
            key_env=config.api_key_env,
        )
        return cls(client, config.model)

    def ask(self, chats: Sequence[Sequence[dict[str, str]]], **settings: object) -> list[Choice | None]:
        """Returns the answer to each chat, None where the server refuses it or has none. A server that refuses the
        field that turns thinking off, since OpenAI's API lacks it, is asked without it. Raises the purpose's error."""
        found = self._ask(chats, {**self._extra, **settings})
        if self._extra and chats and not any(found) and any(again := self._ask(chats, settings)):
            self._extra, found = {}, again
        return found

    def _ask(self, chats: Sequence[Sequence[dict[str, str]]], settings: dict[str, Any]) -> list[Choice | None]:
        bodies = [{"model": self._model, "messages": plain(chat), **settings} for chat in chats]
        replies = self._client.ask("/chat/completions", bodies, _Reply)
        return [next(iter(reply.choices), None) if reply else None for reply in replies]


def plain(chat: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Returns the chat with a space inserted into every text in its contents that looks like a marker.

    Servers encode the rendered template as one text, in which a marker in a message would end that message's turn.
    """
    return [{**message, "content": _plain_text(message["content"])} for message in chat]


def _plain_text(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be sent as JSON
    return _MARKERS.sub(lambda found: found[0] + " ", text)
