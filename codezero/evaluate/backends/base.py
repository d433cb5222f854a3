"""What a judge's model is asked, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.prompts.evaluator import NO, YES

MAX_PROMPT_TOKENS = 6_144
"""Longest prompt judged. The longest statement and tests of a contest that we accept ourselves, dense in numbers, come
to about 4,500; a peer's task could have five times as many, in rare characters, and keep a CPU busy for minutes."""

Chat = Sequence[dict[str, str]]
"""Messages of role and content, the last one the user's. Their contents are untrusted."""

PROBE: Chat = [{"role": "user", "content": "Is 2 + 2 equal to 4? Answer with one word, Yes or No."}]
PROBE_TOKENS = 16


class JudgeBackend(Protocol):
    """A frozen chat model. Every method raises EvaluatorError, in one line, when the model is out of order."""

    @property
    def name(self) -> str:
        """What it is and where, for messages."""
        ...

    def choose(self, chats: Sequence[Chat], choices: Sequence[str]) -> list[tuple[float, ...] | None]:
        """For each chat the probabilities of `choices` as the answer's first token, normalised to sum to 1.

        None where the chat is too long, or the answer would begin with none of them.
        """
        ...

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        """For each chat the most likely answer, cut off at so many tokens; None where the chat is too long."""
        ...

    def check(self) -> None:
        """Asks something small the way `evaluator.verdict` will. Called once, before anything is judged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a model thinks of an answer that stands in its chat as its own."""

    logprobs: Sequence[float]
    """[C], of the answer's tokens."""
    choices: Sequence[float]
    """Log-probabilities of the choices as the first token of what it says next."""


@runtime_checkable
class Reviewer(Protocol):
    """A backend that can tell how likely it finds texts that it did not write."""

    def review(self, chats: Sequence[Chat], choices: Sequence[str]) -> list[Review | None]:
        """For each chat a review of its last message of the assistant's; None if it is too long."""
        ...


def check_by_asking(backend: JudgeBackend, config: EvaluatorConfig) -> None:
    """Raises EvaluatorError: the backend cannot be asked, or answers without what `evaluator.verdict` needs."""
    if config.verdict is not VerdictMode.generate:
        if backend.choose([PROBE], (YES, NO)) == [None]:
            raise EvaluatorError(
                f"{backend.name} gave no probabilities of {YES} and {NO}: set evaluator.verdict=generate, or use a "
                "server and a model that report log-probabilities of an answer without thinking"
            )
    elif backend.write([PROBE], PROBE_TOKENS) == [None]:
        raise EvaluatorError(f"{backend.name} wrote no answer: use a chat model that answers without thinking")
