"""A judge in Ollama, through its own API: that one takes the context's length and says when a prompt exceeds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from codezero.config import EvaluatorConfig
from codezero.errors import EvaluatorError
from codezero.evaluate.backends.base import MAX_PROMPT_TOKENS, Chat, check_by_asking
from codezero.evaluate.backends.served import JUDGING, NUM_ALTERNATIVES, Position, shares
from codezero.llm.chat_server import plain
from codezero.llm.client import JsonClient

DEFAULT_URL = "http://127.0.0.1:11434"


class _Message(msgspec.Struct):
    content: str = ""


class _Reply(msgspec.Struct):
    message: _Message
    logprobs: list[Position] | None = None
    """Given since Ollama 0.12.11, where asked for."""


class OllamaBackend:
    """backends.base.JudgeBackend over POST {url}/api/chat. Ollama knows no keys, so none is sent."""

    def __init__(self, config: EvaluatorConfig) -> None:
        """Raises EvaluatorError: no usable URL or model name."""
        if config.model == "auto":
            raise EvaluatorError(
                "evaluator.model=auto names no model of Ollama: give one of `ollama list`, such as "
                "qwen2.5-coder:1.5b-instruct"
            )
        self._config = config
        self._client = JsonClient(
            config.url or DEFAULT_URL,
            JUDGING,
            timeout_s=config.timeout_s,
            retries=config.retries,
            at_once=config.batch_size,
        )
        self.name = f"{config.model} at {self._client.place}"

    def check(self) -> None:
        """Raises EvaluatorError: it cannot be asked, or answers without what `evaluator.verdict` needs."""
        check_by_asking(self, self._config)

    def choose(self, chats: Sequence[Chat], choices: Sequence[str]) -> list[tuple[float, ...] | None]:
        replies = self._ask(chats, 1, {"logprobs": True, "top_logprobs": NUM_ALTERNATIVES})
        return [shares(reply.logprobs or (), choices) if reply else None for reply in replies]

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        return [reply.message.content if reply else None for reply in self._ask(chats, max_new_tokens, {})]

    def _ask(self, chats: Sequence[Chat], num_new: int, more: dict[str, Any]) -> list[_Reply | None]:
        # A context of one length for all requests: another one would have Ollama load the model anew.
        context = MAX_PROMPT_TOKENS + self._config.max_new_tokens
        settings = {
            "model": self._config.model,
            "stream": False,
            "think": False,
            "truncate": False,  # or it would cut what does not fit off the start, and judge the rest
            "shift": False,
            "options": {"temperature": 0.0, "num_predict": num_new, "num_ctx": context},
            **more,
        }
        return self._client.ask("/api/chat", [{"messages": plain(chat), **settings} for chat in chats], _Reply)
