"""A judge in Ollama, through Ollama's own API, which takes the length of the context and reports a longer prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from codezero.config import EvaluatorConfig
from codezero.errors import EvaluatorError
from codezero.evaluate.backends.base import MAX_PROMPT_TOKENS, Chat
from codezero.evaluate.backends.served import JUDGING, NUM_ALTERNATIVES, check_by_asking, shares
from codezero.llm.chat_server import Position, plain
from codezero.llm.client import JsonClient

DEFAULT_URL = "http://127.0.0.1:11434"


class _Message(msgspec.Struct):
    content: str = ""


class _Reply(msgspec.Struct):
    message: _Message
    logprobs: list[Position] | None = None
    """Tokens with log-probabilities, if requested; Ollama reports them since 0.12.11."""


class OllamaBackend:
    """A judge (backends.base.JudgeBackend) over POST {url}/api/chat, without a key, since Ollama has none."""

    def __init__(self, config: EvaluatorConfig) -> None:
        """Raises EvaluatorError: URL or model name is not usable."""
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
        """Raises EvaluatorError: Ollama cannot be asked, or its answer lacks what `evaluator.verdict` needs."""
        check_by_asking(self, self._config)

    def choose(self, chats: Sequence[Chat]) -> list[tuple[float, float] | None]:
        replies = self._ask(chats, 1, {"logprobs": True, "top_logprobs": NUM_ALTERNATIVES})
        return [shares(reply.logprobs or ()) if reply else None for reply in replies]

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        return [reply.message.content if reply else None for reply in self._ask(chats, max_new_tokens, {})]

    def _ask(self, chats: Sequence[Chat], num_new: int, more: dict[str, Any]) -> list[_Reply | None]:
        # All requests have a context of one length: for another one Ollama would load the model again.
        context = MAX_PROMPT_TOKENS + self._config.max_new_tokens
        settings = {
            "model": self._config.model,
            "stream": False,
            "think": False,
            "truncate": False,  # else Ollama would cut a long prompt at its start, and judge the rest
            "shift": False,
            "options": {"temperature": 0.0, "num_predict": num_new, "num_ctx": context},
            **more,
        }
        return self._client.ask("/api/chat", [{"messages": plain(chat), **settings} for chat in chats], _Reply)
