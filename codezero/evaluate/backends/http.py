"""A judge behind a server that speaks OpenAI's chat protocol."""

from __future__ import annotations

from collections.abc import Sequence

from codezero.config import EvaluatorConfig
from codezero.evaluate.backends.base import Chat, check_by_asking
from codezero.evaluate.backends.served import NUM_ALTERNATIVES, shares
from codezero.llm.chat_server import ChatServer


class OpenAIBackend:
    """A judge (backends.base.JudgeBackend) behind a chat server."""

    def __init__(self, config: EvaluatorConfig, server: ChatServer) -> None:
        self._config, self._server = config, server
        self.name = server.name

    def check(self) -> None:
        """Raises EvaluatorError: the server cannot be asked, or its answer lacks what `evaluator.verdict` needs."""
        check_by_asking(self, self._config)

    def choose(self, chats: Sequence[Chat]) -> list[tuple[float, float] | None]:
        answers = self._server.ask(chats, max_tokens=1, temperature=0.0, logprobs=True, top_logprobs=NUM_ALTERNATIVES)
        return [shares((answer.logprobs and answer.logprobs.content) or ()) if answer else None for answer in answers]

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        answers = self._server.ask(chats, max_tokens=max_new_tokens, temperature=0.0)
        return [answer.message.content if answer else None for answer in answers]
