"""A judge behind a server that speaks OpenAI's chat protocol, and what it has in common with one in Ollama."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate.backends.base import Chat, JudgeBackend
from codezero.llm.chat_server import ChatServer, Position
from codezero.llm.client import Purpose
from codezero.prompts.evaluator import NO, YES

JUDGING = Purpose(who="the judge", section="evaluator", error=EvaluatorError)
NUM_ALTERNATIVES = 20
"""The number of most likely tokens to request, the most that these protocols report."""
PROBE: Chat = [{"role": "user", "content": "Is 2 + 2 equal to 4? Answer with one word, Yes or No."}]
PROBE_TOKENS = 16


def shares(positions: Iterable[Position]) -> tuple[float, float] | None:
    """Returns the probabilities of Yes and No at the first position, normalised to sum to 1; case and surrounding space
    do not matter. None if there is no position, or neither is among its alternatives."""
    first = next(iter(positions), None)
    if first is None:
        return None
    known = {other.token: other.logprob for other in first.top_logprobs}
    known.setdefault(first.token, first.logprob)
    yes, no = (
        sum(math.exp(min(logprob, 0.0)) for token, logprob in known.items() if _same(token, choice))
        for choice in (YES, NO)
    )
    return (yes / (yes + no), no / (yes + no)) if yes + no > 0.0 else None


def _same(token: str, choice: str) -> bool:
    return token.strip().casefold() == choice.casefold()


def check_by_asking(backend: JudgeBackend, config: EvaluatorConfig) -> None:
    """Asks the backend a short question. Raises EvaluatorError: the backend cannot be asked, or its answer lacks what
    `evaluator.verdict` needs."""
    if config.verdict is not VerdictMode.generate:
        if backend.choose([PROBE]) == [None]:
            raise EvaluatorError(
                f"{backend.name} gave no probabilities of {YES} and {NO}: set evaluator.verdict=generate, or use a "
                "server and a model that report log-probabilities of an answer without thinking"
            )
    elif backend.write([PROBE], PROBE_TOKENS) == [None]:
        raise EvaluatorError(f"{backend.name} wrote no answer: use a chat model that answers without thinking")


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
