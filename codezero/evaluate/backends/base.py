"""The interface of a judge's model, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.prompts.evaluator import NO, YES

MAX_PROMPT_TOKENS = 6_144
"""The most tokens of a prompt that is judged. The longest contest problem with tests that this node accepts for itself,
dense in numbers, has about 4,500; a peer's task in rare characters could have five times as many, and keep a CPU busy
for minutes."""

Chat = Sequence[dict[str, str]]
"""Messages of role and content, the last one from the user. Their contents are untrusted."""

PROBE: Chat = [{"role": "user", "content": "Is 2 + 2 equal to 4? Answer with one word, Yes or No."}]
PROBE_TOKENS = 16


class JudgeBackend(Protocol):
    """A frozen chat model. Every method raises EvaluatorError, with a message of one line, if the model fails."""

    @property
    def name(self) -> str:
        """The name of the model and where it runs, for messages."""
        ...

    def choose(self, chats: Sequence[Chat]) -> list[tuple[float, float] | None]:
        """Returns for each chat the probabilities of Yes and No as the answer's first token, normalised to sum to 1.

        None if the chat is too long, or the answer would begin with neither of them.
        """
        ...

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        """Returns for each chat the most likely answer, cut off at `max_new_tokens`; None if the chat is too long."""
        ...

    def check(self) -> None:
        """Asks a short question in the form that `evaluator.verdict` sets. Called once, before anything is judged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A model's probabilities for an answer that its chat presents as its own."""

    logprobs: Sequence[float]
    """Log-probabilities of the answer's tokens, in nats: [C]."""
    choices: Sequence[float]
    """Log-probabilities of Yes and No as the first token of the model's next message."""


@runtime_checkable
class Reviewer(Protocol):
    """A backend that can tell the probability of texts that it did not write."""

    def review(self, chats: Sequence[Chat]) -> list[Review | None]:
        """Returns for each chat a review of the assistant's last message; None if the chat is too long."""
        ...


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
