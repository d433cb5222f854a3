"""The frozen model's opinion: what it is asked about a solution, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate import calibration
from codezero.evaluate.backends.base import Chat, JudgeBackend, Review, Reviewer
from codezero.evaluate.examination import Shown
from codezero.prompts import evaluator as prompt
from codezero.types import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A solution put before a judge."""

    task: Task
    code: str
    shown: Shown
    """What a model gets to see of it."""
    sides: tuple[tuple[int, str, str], ...] = ()
    """Number, left and right side of the tests that are to be told of one by one."""
    passed: float = 0.0
    """Share of its tests that its dry run passed before it stopped; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a judge says of one solution. `p_correct` is None when its reply has no verdict."""

    p_correct: float | None
    reply: str = ""


_Read = Callable[[float], Opinion]
"""Makes an opinion of what a model said, with `Submission.passed`: solutions that look the same may differ in it."""


class Judge(Protocol):
    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        """An opinion on each. Raises EvaluatorError when the judge is out of order."""
        ...

    def permit(self, external: bool) -> None:
        """Raises EvaluatorError: this judge may not be given code of other nodes."""
        ...


@runtime_checkable
class CaseJudge(Protocol):
    """A judge that can also tell of single tests."""

    def judge_cases(self, solution: Submission, p_correct: float) -> dict[int, float]:
        """Of those of the solution's `sides` that it can tell of, by number, the probability that the test passes.
        `p_correct` is its opinion of the whole. Raises EvaluatorError when the judge is out of order."""
        ...


class ModelJudge:
    """A frozen chat model as judge. It is shown a solution in its own chat, as its own answer (`shown.show` has taken
    out what talks to it), and its probability comes from

    - likelihood: how likely it finds that answer, Yes against No as its next word, and the share of tests that the dry
      run passed, through `calibration`;
    - logit: the last two alone, for models behind a server;
    - generate: a written JSON verdict.
    """

    def __init__(self, backend: JudgeBackend, config: EvaluatorConfig) -> None:
        """Raises EvaluatorError: the backend cannot give what `evaluator.verdict` asks for."""
        self._backend, self._config = backend, config
        self.verdict = choose_verdict(backend, config.verdict)
        self._calibration = calibration.of(backend.name)

    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        """Opinions in the order of `solutions`; what looks the same when shown is asked about once."""
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

    def permit(self, external: bool) -> None:
        """Anybody's code may be read."""

    def judge_cases(self, solution: Submission, p_correct: float) -> dict[int, float]:
        """Tells of tests by how likely their right side is to the model as the value of the left. Needs likelihoods,
        and weights that were fitted for them."""
        if self.verdict is not VerdictMode.likelihood or self._calibration.case is None:
            return {}
        assert isinstance(self._backend, Reviewer)
        chats = [prompt.value_messages(solution.shown.code, left, right) for _, left, right in solution.sides]
        reviews = self._backend.review(chats, (prompt.YES, prompt.NO))
        found = {
            number: self._calibration.by_case(p_correct, sum(review.logprobs))
            for (number, _, _), review in zip(solution.sides, reviews, strict=True)
            if review is not None
        }
        return {number: p for number, p in found.items() if 0.0 <= p <= 1.0}

    def _by_likelihood(self, chats: Sequence[Chat]) -> list[_Read]:
        assert isinstance(self._backend, Reviewer)
        found = self._backend.review(chats, (prompt.YES, prompt.NO))
        return [self._none if one is None else partial(self._of_review, one) for one in found]

    def _of_review(self, review: Review, passed: float) -> Opinion:
        found = features_of(review, passed)
        reply = f"log p {found['total']:.1f}, {found['mean']:.2f} a token; Yes/No {found['margin']:+.2f}"
        return _of_probability(self._calibration.by_likelihood(found), reply)

    def _by_logit(self, chats: Sequence[Chat]) -> list[_Read]:
        answers = self._backend.choose(chats, (prompt.YES, prompt.NO))
        return [self._none if answer is None else partial(self._of_choice, *answer) for answer in answers]

    def _of_choice(self, yes: float, no: float, passed: float) -> Opinion:
        return _of_probability(self._calibration.by_logit(yes, no, passed), f"P(Yes)={yes:.3f}")

    def _by_writing(self, chats: Sequence[Chat]) -> list[_Read]:
        replies = self._backend.write(chats, self._config.max_new_tokens)
        return [self._none if reply is None else partial(_of_reply, reply) for reply in replies]

    def _none(self, passed: float) -> Opinion:
        return Opinion(p_correct=None, reply=f"longer than {self._backend.name} takes, or answered otherwise")


def choose_verdict(backend: JudgeBackend, wanted: VerdictMode) -> VerdictMode:
    """What `auto` comes to. Raises EvaluatorError: likelihood is wanted of a backend that cannot tell it."""
    if wanted is VerdictMode.auto:
        return VerdictMode.likelihood if isinstance(backend, Reviewer) else VerdictMode.logit
    if wanted is VerdictMode.likelihood and not isinstance(backend, Reviewer):
        raise EvaluatorError(f"{backend.name} cannot tell likelihoods: set evaluator.verdict=auto")
    return wanted


def features_of(review: Review, passed: float) -> dict[str, float]:
    """`calibration.features` of a solution."""
    yes, no = review.choices
    return calibration.features(yes - no, review.logprobs, passed)


def _of_probability(p: float, reply: str) -> Opinion:
    # A probability that is not finite compares false and so becomes no verdict.
    return Opinion(p_correct=p if 0.0 <= p <= 1.0 else None, reply=reply)


def _of_reply(reply: str, passed: float) -> Opinion:
    verdict = prompt.parse_json(reply)
    return Opinion(p_correct=None if verdict is None else float(verdict), reply=reply)
