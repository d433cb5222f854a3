"""The interface of a judge's model, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

MAX_PROMPT_TOKENS = 6_144
"""The most tokens of a prompt that is judged. The longest contest problem with tests that this node accepts for itself,
dense in numbers, has about 4,500; a peer's task in rare characters could have five times as many, and keep a CPU busy
for minutes."""

Chat = Sequence[dict[str, str]]
"""Messages of role and content, the last one from the user. Their contents are untrusted."""


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
