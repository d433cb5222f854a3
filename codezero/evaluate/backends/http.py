"""A judge behind a server that speaks OpenAI's chat protocol: vLLM, SGLang, llama.cpp's own, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from codezero.config import EvaluatorConfig
from codezero.evaluate.backends.base import PROBE, Chat, check_by_asking
from codezero.evaluate.backends.served import JUDGING, NUM_ALTERNATIVES, Position, shares
from codezero.llm.chat_server import NO_THINKING, client_of, plain
from codezero.llm.client import JsonClient


class _Logprobs(msgspec.Struct):
    content: list[Position] | None = None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    logprobs: _Logprobs | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice]


class OpenAIBackend:
    """A judge (backends.base.JudgeBackend) over POST {url}/chat/completions, with at most `evaluator.batch_size`
    requests at once."""

    def __init__(self, config: EvaluatorConfig, client: JsonClient) -> None:
        self._config, self._client = config, client
        self._extra = NO_THINKING
        self.name = f"{config.model} at {client.place}"

    @classmethod
    def from_config(cls, config: EvaluatorConfig) -> OpenAIBackend:
        """Makes the judge, with the key from the environment. Raises EvaluatorError: URL, key or model name is not
        usable."""
        return cls(config, client_of(config, JUDGING))

    def check(self) -> None:
        """Checks the server, and whether it accepts the field that turns thinking off: some refuse what is not
        OpenAI's.

        Raises EvaluatorError: the server cannot be asked, or its answer lacks what `evaluator.verdict` needs.
        """
        if self._ask([PROBE], 1, {}) == [None]:
            self._extra = {}
        check_by_asking(self, self._config)

    def choose(self, chats: Sequence[Chat], choices: Sequence[str]) -> list[tuple[float, ...] | None]:
        answers = self._ask(chats, 1, {"logprobs": True, "top_logprobs": NUM_ALTERNATIVES})
        return [
            shares((answer.logprobs and answer.logprobs.content) or (), choices) if answer else None
            for answer in answers
        ]

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        return [answer.message.content if answer else None for answer in self._ask(chats, max_new_tokens, {})]

    def _ask(self, chats: Sequence[Chat], max_tokens: int, more: dict[str, Any]) -> list[_Choice | None]:
        settings = {"model": self._config.model, "max_tokens": max_tokens, "temperature": 0.0, **self._extra, **more}
        bodies = [{"messages": plain(chat), **settings} for chat in chats]
        replies = self._client.ask("/chat/completions", bodies, _Reply)
        return [next(iter(reply.choices), None) if reply else None for reply in replies]
