"""The frozen model as judge: asks it about solutions, and reads its answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate import calibration
from codezero.evaluate.backends.base import Chat, JudgeBackend, Review, Reviewer
from codezero.evaluate.examination import Shown
from codezero.prompts import evaluator as prompt
from codezero.types import Task

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A solution that a judge is asked about."""

    task: Task
    code: str
    shown: Shown
    """Question, tests and code as a model sees them."""
    external: bool = False
    """True if the solution is another node's."""
    passed: float = 0.0
    """The share of its tests that its dry run passed before it stopped, in 0..1; 0 without a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """A judge's opinion of one solution. `p_correct` is None if its reply has no verdict."""

    p_correct: float | None
    reply: str = ""


_Read = Callable[[float], Opinion]
"""Returns an opinion for a value of `Submission.passed`, in which solutions that look the same may differ."""


class Judge(Protocol):
    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        """Returns an opinion on each solution, in order. Raises EvaluatorError: the judge fails."""
        ...


class ModelJudge:
    """A frozen chat model as judge. A solution, without text that addresses the judge (`evaluate.shown`), stands in the
    model's chat as its own answer. The probability that it is right comes from

    - likelihood: the log-probability of that answer, the log-odds of Yes against No as the model's next word, and the
      share of tests that the dry run passed, through `calibration`;
    - logit: only the last two, for models behind a server;
    - generate: a JSON verdict that the model writes.
    """

    def __init__(self, backend: JudgeBackend, config: EvaluatorConfig) -> None:
        """Raises EvaluatorError: the backend does not support `evaluator.verdict`."""
        self._backend, self._config = backend, config
        self.verdict = choose_verdict(backend, config.verdict)
        self._calibration = calibration.of(backend.name)

    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        """Returns opinions in the order of `solutions`; asks once about solutions that look the same."""
        messages = prompt.json_messages if self.verdict is VerdictMode.generate else prompt.review_messages
        distinct = list(dict.fromkeys(solution.shown for solution in solutions))
        chats = [messages(one.question, one.tests, one.code) for one in distinct]
        by = {
            VerdictMode.likelihood: self._by_likelihood,
            VerdictMode.logit: self._by_logit,
            VerdictMode.generate: self._by_writing,
        }
        read = dict(zip(distinct, by[self.verdict](chats), strict=True))
        return [read[solution.shown](solution.passed) for solution in solutions]

    def _by_likelihood(self, chats: Sequence[Chat]) -> list[_Read]:
        assert isinstance(self._backend, Reviewer)
        found = self._backend.review(chats)
        return [self._none if one is None else partial(self._of_review, one) for one in found]

    def _of_review(self, review: Review, passed: float) -> Opinion:
        found = features_of(review, passed)
        reply = f"log p {found['total']:.1f}, {found['mean']:.2f} a token; Yes/No {found['margin']:+.2f}"
        return _of_probability(self._calibration.by_likelihood(found), reply)

    def _by_logit(self, chats: Sequence[Chat]) -> list[_Read]:
        answers = self._backend.choose(chats)
        return [self._none if answer is None else partial(self._of_choice, *answer) for answer in answers]

    def _of_choice(self, yes: float, no: float, passed: float) -> Opinion:
        return _of_probability(self._calibration.by_logit(yes, no, passed), f"P(Yes)={yes:.3f}")

    def _by_writing(self, chats: Sequence[Chat]) -> list[_Read]:
        replies = self._backend.write(chats, self._config.max_new_tokens)
        return [self._none if reply is None else partial(_of_reply, reply) for reply in replies]

    def _none(self, passed: float) -> Opinion:
        return Opinion(p_correct=None, reply=f"longer than {self._backend.name} takes, or answered otherwise")


def ask(judge: Judge, groups: Sequence[Sequence[Submission]]) -> list[list[Opinion]]:
    """Returns the judge's opinions by group, each of which has the solutions to one task. If it fails over several groups,
    it is asked about each of them alone, so that a group which it cannot take costs no other its opinions."""
    asked = [one for one in groups if one]
    try:
        submissions = [submission for one in asked for submission in one]
        found = iter(judge.judge(submissions) if submissions else ())
    except EvaluatorError as error:
        if len(asked) > 1:
            return [opinions for one in groups for opinions in ask(judge, [one])]
        logger.warning(
            "attempts at task %s stay without a verdict: %s. They are not trained on, and the node continues; "
            "if it happens in every round, check that the judge runs (evaluator.*)",
            asked[0][0].task.task_id,
            error,
        )
        return [[Opinion(p_correct=None, reply=str(error))] * len(one) for one in groups]
    return [list(islice(found, len(one))) for one in groups]


def choose_verdict(backend: JudgeBackend, wanted: VerdictMode) -> VerdictMode:
    """Returns the mode that `auto` stands for, else `wanted`. Raises EvaluatorError: `wanted` is likelihood, which the
    backend does not support."""
    if wanted is VerdictMode.auto:
        return VerdictMode.likelihood if isinstance(backend, Reviewer) else VerdictMode.logit
    if wanted is VerdictMode.likelihood and not isinstance(backend, Reviewer):
        raise EvaluatorError(f"{backend.name} cannot tell likelihoods: set evaluator.verdict=auto")
    return wanted


def features_of(review: Review, passed: float) -> dict[str, float]:
    """Returns `calibration.features` of a reviewed solution."""
    yes, no = review.choices
    return calibration.features(yes - no, review.logprobs, passed)


def _of_probability(p: float, reply: str) -> Opinion:
    # A probability that is not finite fails the comparison, so it becomes no verdict.
    return Opinion(p_correct=p if 0.0 <= p <= 1.0 else None, reply=reply)


def _of_reply(reply: str, passed: float) -> Opinion:
    verdict = prompt.parse_json(reply)
    return Opinion(p_correct=None if verdict is None else float(verdict), reply=reply)
