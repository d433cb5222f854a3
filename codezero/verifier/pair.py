"""The solver that learns beside a test writer: from its solutions, and from second attempts at those that were refused.

    reward = 1 for a solution that is right by all tests of the task, else 0

The rule is that of AstraFlow's recipe `code_actor_and_verify` v3 (Apache-2.0), where both attempts earn by themselves,
and only wrong solutions that written cases refuse are tried again. The cases need not be valid: where a solver is used
nobody knows which are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from codezero.prompts import second_attempt
from codezero.reports import SolverReport
from codezero.train.learner import GrpoLearner
from codezero.types import CaseOutcome, Reward, ScoredGroup
from codezero.verifier.exercises import CandidateSolver, JudgedAttempts
from codezero.verifier.jobs import ask_to_try
from codezero.verifier.judging import Answered
from codezero.workers import Death, Workers


class LearningSolver:
    """Makes second attempts, and learns from these and the first ones."""

    def __init__(
        self,
        candidates: CandidateSolver,
        workers: Workers,
        learner: GrpoLearner,
        weights: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """`weights` returns a context in which the model trains the solver's weights."""
        self._candidates, self._workers, self.learner, self._weights = candidates, workers, learner, weights

    def try_again(self, answered: Sequence[Answered], seed: str) -> list[JudgedAttempts]:
        """Returns second attempts at each wrong solution that an answer refused by cases that can be tried; of several
        answers one is chosen at random, the same for equal seeds. Raises WorkerError or RolloutError."""
        rng = random.Random(seed)
        problems, questions = [], []
        for one in answered:
            if one.exercise.is_right:
                continue
            told = zip(one.answers, one.judged, strict=True)
            refused = [answer for answer, judged in told if judged is not None and not judged.approves]
            refusing = [answer.cases for answer in refused if answer.cases]
            rng.shuffle(refusing)
            failures = (found for cases in dict.fromkeys(refusing) if (found := self._failures(one, cases)))
            if results := next(failures, None):
                problem = one.exercise.problem
                problems.append(problem)
                questions.append(second_attempt.question(problem.task.question, one.exercise.candidate, results))
        return self._candidates.judge(self._candidates.solve(problems, questions)) if problems else []

    def learn(self, first: Sequence[JudgedAttempts], second: Sequence[JudgedAttempts]) -> SolverReport:
        """Makes one update from all attempts, which the present weights have sampled. Raises TrainingError."""
        version, tried = self.learner.policy_version, (*first, *second)
        with self._weights():
            update = self.learner.step([_scored(one, version) for one in tried])
        return SolverReport(
            num_attempts=sum(len(one.verdicts) for one in first),
            right=_share_right(first),
            num_second=sum(len(one.verdicts) for one in second),
            second_right=_share_right(second),
            num_tokens=sum(len(own.tokens.completion_ids) for one in tried for own in one.group.rollouts if own.tokens),
            policy_version=update.policy_version,
            loss=update.loss,
            grad_norm=update.grad_norm,
            skipped=update.skipped.value if update.skipped is not None else None,
        )

    def _failures(self, one: Answered, cases: tuple[str, ...]) -> list[tuple[str, str]]:
        """Returns the cases that the candidate fails, each with the reason."""
        tried = ask_to_try(self._workers, one.exercise.problem.task, cases, (one.exercise.candidate,))
        if isinstance(tried, Death):
            return []
        (candidate,) = tried.programs
        usable = [case for case, is_usable in zip(cases, tried.usable, strict=True) if is_usable]
        results = zip(usable, candidate.cases, candidate.reasons, strict=True)
        return [(case, reason) for case, outcome, reason in results if outcome is CaseOutcome.FAIL]


def _scored(one: JudgedAttempts, policy_version: int) -> ScoredGroup:
    """Returns the group with its rewards; attempts that cannot be told right or wrong are masked."""
    return ScoredGroup.of_tokens(
        (rollout.tokens for rollout in one.group.rollouts),
        [
            None if right is None else Reward(total=float(right), parts={"correct": float(right)})
            for right in one.verdicts
        ],
        policy_version=policy_version,
    )


def _share_right(attempted: Sequence[JudgedAttempts]) -> float | None:
    told = [right for one in attempted for right in one.verdicts if right is not None]
    return sum(told) / len(told) if told else None
