"""The frozen model's opinion: what it is asked about a solution, and how its answer is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a judge says of one solution. `p_correct` is None when its reply has no verdict."""

    p_correct: float | None
    reply: str = ""


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

    - likelihood: how likely it finds that answer, and Yes against No as its next word, through `calibration`;
    - logit: the latter alone, for models behind a server;
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
        shown = [solution.shown for solution in solutions]
        distinct = list(dict.fromkeys(shown))
        chats = [messages(one.question, one.tests, one.code) for one in distinct]
        by = {
            VerdictMode.likelihood: self._by_likelihood,
            VerdictMode.logit: self._by_logit,
            VerdictMode.generate: self._by_writing,
        }
        opinions = dict(zip(distinct, by[self.verdict](chats), strict=True))
        return [opinions[one] for one in shown]

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

    def _by_likelihood(self, chats: Sequence[Chat]) -> list[Opinion]:
        assert isinstance(self._backend, Reviewer)
        found = self._backend.review(chats, (prompt.YES, prompt.NO))
        return [self._none() if one is None else self._of_review(one) for one in found]

    def _of_review(self, review: Review) -> Opinion:
        margin, mean, total = features(review)
        p = self._calibration.by_likelihood(margin, mean, total)
        return _of_probability(p, f"log p {total:.1f}, {mean:.2f} a token; Yes/No {margin:+.2f}")

    def _by_logit(self, chats: Sequence[Chat]) -> list[Opinion]:
        answers = self._backend.choose(chats, (prompt.YES, prompt.NO))
        return [self._none() if answer is None else self._of_choice(*answer) for answer in answers]

    def _of_choice(self, yes: float, no: float) -> Opinion:
        return _of_probability(self._calibration.by_logit(yes, no), f"P(Yes)={yes:.3f}")

    def _by_writing(self, chats: Sequence[Chat]) -> list[Opinion]:
        replies = self._backend.write(chats, self._config.max_new_tokens)
        return [self._none() if reply is None else _of_reply(reply) for reply in replies]

    def _none(self) -> Opinion:
        return Opinion(p_correct=None, reply=f"longer than {self._backend.name} takes, or answered otherwise")


def choose_verdict(backend: JudgeBackend, wanted: VerdictMode) -> VerdictMode:
    """What `auto` comes to. Raises EvaluatorError: likelihood is wanted of a backend that cannot tell it."""
    if wanted is VerdictMode.auto:
        return VerdictMode.likelihood if isinstance(backend, Reviewer) else VerdictMode.logit
    if wanted is VerdictMode.likelihood and not isinstance(backend, Reviewer):
        raise EvaluatorError(f"{backend.name} cannot tell likelihoods: set evaluator.verdict=auto")
    return wanted


def features(review: Review) -> tuple[float, float, float]:
    """Log-odds of Yes, mean and sum of the solution's token log-probabilities."""
    yes, no = review.choices
    total = sum(review.logprobs)
    return yes - no, total / len(review.logprobs), total


def _of_probability(p: float, reply: str) -> Opinion:
    # A probability that is not finite compares false and so becomes no verdict.
    return Opinion(p_correct=p if 0.0 <= p <= 1.0 else None, reply=reply)


def _of_reply(reply: str) -> Opinion:
    verdict = prompt.parse_json(reply)
    return Opinion(p_correct=None if verdict is None else float(verdict), reply=reply)
