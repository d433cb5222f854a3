"""The frozen model's opinion: what it is asked about a solution, and how its answer is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.evaluate.backends.base import Chat, JudgeBackend
from codezero.prompts import evaluator as prompt
from codezero.types import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a judge says of one solution. `p_correct` is None when its reply has no verdict."""

    p_correct: float | None
    reply: str = ""


class Judge(Protocol):
    def judge(self, solutions: Sequence[tuple[Task, str]]) -> list[Opinion]:
        """An opinion on each (task, code). Raises EvaluatorError when the judge is out of order."""
        ...


class ModelJudge:
    """A frozen chat model as judge: by the probabilities of Yes and No, or by a written JSON verdict."""

    def __init__(self, backend: JudgeBackend, config: EvaluatorConfig) -> None:
        self._backend, self._config = backend, config

    def judge(self, solutions: Sequence[tuple[Task, str]]) -> list[Opinion]:
        """Opinions in the order of `solutions`; those that go into one call share the backend's batches and caches."""
        by_logit = self._config.verdict is VerdictMode.logit
        messages = prompt.yes_no_messages if by_logit else prompt.json_messages
        chats = [messages(task.question, task.tests, code) for task, code in solutions]
        return self._by_logit(chats) if by_logit else self._by_writing(chats)

    def _by_logit(self, chats: Sequence[Chat]) -> list[Opinion]:
        answers = self._backend.choose(chats, (prompt.YES, prompt.NO))
        return [self._none() if answer is None else _of_probability(answer[0]) for answer in answers]

    def _by_writing(self, chats: Sequence[Chat]) -> list[Opinion]:
        replies = self._backend.write(chats, self._config.max_new_tokens)
        return [self._none() if reply is None else _of_reply(reply) for reply in replies]

    def _none(self) -> Opinion:
        return Opinion(p_correct=None, reply=f"longer than {self._backend.name} takes, or answered otherwise")


def _of_probability(yes: float) -> Opinion:
    # A probability that is not finite compares false and so becomes no verdict.
    return Opinion(p_correct=yes if 0.0 <= yes <= 1.0 else None, reply=f"P(Yes)={yes:.3f}")


def _of_reply(reply: str) -> Opinion:
    verdict = prompt.parse_json(reply)
    return Opinion(p_correct=None if verdict is None else float(verdict), reply=reply)
