"""The frozen model as judge: asks it about solutions, and reads its answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate import calibration
from codezero.evaluate.backends.base import Chat, JudgeBackend, Review, Reviewer
from codezero.evaluate.jobs import Shown
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
        answers = dict(zip(distinct, self._ask(chats), strict=True))
        return [self._opinion(answers[solution.shown], solution.passed) for solution in solutions]

    def _ask(self, chats: Sequence[Chat]) -> Sequence[Review | tuple[float, float] | str | None]:
        """Returns the backend's answer to each chat, of the kind that the verdict is made of."""
        if self.verdict is VerdictMode.likelihood:
            assert isinstance(self._backend, Reviewer)
            return self._backend.review(chats)
        if self.verdict is VerdictMode.logit:
            return self._backend.choose(chats)
        return self._backend.write(chats, self._config.max_new_tokens)

    def _opinion(self, answer: Review | tuple[float, float] | str | None, passed: float) -> Opinion:
        """Returns the opinion of a solution by the backend's answer and `Submission.passed`."""
        match answer:
            case None:
                return Opinion(p_correct=None, reply=f"longer than {self._backend.name} takes, or answered otherwise")
            case Review():
                yes, no = answer.choices
                found = calibration.features(yes - no, answer.logprobs, passed)
                reply = f"log p {found['total']:.1f}, {found['mean']:.2f} a token; Yes/No {found['margin']:+.2f}"
                return _of_probability(self._calibration.by_likelihood(found), reply)
            case str():
                verdict = prompt.parse_json(answer)
                return Opinion(p_correct=None if verdict is None else float(verdict), reply=answer)
            case yes, no:
                return _of_probability(self._calibration.by_logit(yes, no, passed), f"P(Yes)={yes:.3f}")


def ask(judge: Judge, groups: Sequence[Sequence[Submission]]) -> list[list[Opinion]]:
    """Returns the judge's opinions by group, each of which has the solutions to one task. If it fails over several
    groups, it is asked about each of them alone, so that a group which it cannot take costs no other its opinions."""
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


def _of_probability(p: float, reply: str) -> Opinion:
    # A probability that is not finite fails the comparison, so it becomes no verdict.
    return Opinion(p_correct=p if 0.0 <= p <= 1.0 else None, reply=reply)
