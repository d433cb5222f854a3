"""The evaluator: rules, the dry run and the judge's opinion become verdicts and rewards, a whole round at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codezero.config import EvaluatorConfig, RewardConfig
from codezero.errors import EvaluatorError
from codezero.evaluate import rules
from codezero.evaluate.judge import CaseJudge, Judge, Opinion
from codezero.evaluate.reward import reward
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.testcases import TestSuite, parse_tests
from codezero.types import CaseOutcome, CaseResult, Outcome, RolloutGroup, ScoredGroup, SwarmRound, Task, Verdict

logger = logging.getLogger(__name__)

CaseRunner = Callable[[str, TestSuite], tuple[CaseResult, ...]]
"""Walks through (or, in a sandbox, executes) a program's test cases, one result each. Raises EvaluatorError."""

P_PASSED, P_FAILED = 0.99, 0.01
"""Probability of being right for a solution whose cases all passed, or of which one failed, in a dry run. Of 501 that
`benchmarks/evaluator.py` compared with their execution none was judged wrongly; nothing is certain all the same."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is judged: the whole answer, and the program in it."""

    text: str
    code: str


class FrozenEvaluator:
    """ports.Evaluator. Equal answers to a task are judged once; a group with any rollout unjudged stays unscored.

    A solution is wrong without being asked about if it breaks a fatal rule; otherwise its dry run decides, where that
    comes to an end on every case; the judge is asked for the rest, and then about each test that was left open.
    """

    def __init__(
        self,
        judge: Judge,
        config: EvaluatorConfig,
        reward_config: RewardConfig,
        progress: Progress,
        run_cases: CaseRunner | None = None,
    ) -> None:
        self._judge, self._config, self._reward_config, self._progress = judge, config, reward_config, progress
        self._run_cases = run_cases

    def score(self, swarm_round: SwarmRound) -> tuple[ScoredGroup, ...]:
        """All groups of the round, own ones first, each with G verdicts, and G rewards unless it stays unscored."""
        groups = [(group, False) for group in swarm_round.local] + [(group, True) for group in swarm_round.external]
        scored = []
        for done, (group, external) in enumerate(groups, start=1):
            scored.append(self.score_group(group, external))
            self._progress("score", done, len(groups))
        return tuple(scored)

    def score_group(self, group: RolloutGroup, external: bool = False) -> ScoredGroup:
        """One group with its verdicts and rewards."""
        attempts = [_attempt(rollout.text) for rollout in group.rollouts]
        found = self._assess(group.task, [a for a in attempts if isinstance(a, Attempt)], external)
        verdicts = tuple(
            found[attempt] if isinstance(attempt, Attempt) else Verdict(outcome=attempt) for attempt in attempts
        )
        rewards = (
            ()
            if any(verdict.outcome is Outcome.UNAVAILABLE for verdict in verdicts)
            else tuple(
                reward(verdict, rollout.finish, self._reward_config)
                for verdict, rollout in zip(verdicts, group.rollouts, strict=True)
            )
        )
        return ScoredGroup(group=group, verdicts=verdicts, rewards=rewards, external=external)

    def _assess(self, task: Task, attempts: Sequence[Attempt], external: bool) -> dict[Attempt, Verdict]:
        """The verdict on each distinct attempt at a task."""
        suite = parse_tests(task.tests)
        found = {attempt: self._examine(task, suite, attempt) for attempt in dict.fromkeys(attempts)}
        open_ones = [attempt for attempt, verdict in found.items() if verdict.outcome is Outcome.UNAVAILABLE]
        for attempt, opinion in zip(open_ones, self._ask(task, open_ones, external), strict=True):
            outcome = Outcome.UNAVAILABLE if opinion.p_correct is None else Outcome.JUDGED
            cases = self._with_opinions(found[attempt].cases, task, attempt, opinion)
            found[attempt] = replace(
                found[attempt], outcome=outcome, p_correct=opinion.p_correct, cases=cases, reply=opinion.reply
            )
        return found

    def _examine(self, task: Task, suite: TestSuite, attempt: Attempt) -> Verdict:
        """What can be said without the judge; still unavailable where that is not enough."""
        checked = rules.check(attempt.code, attempt.text, task, suite)
        verdict = Verdict(
            outcome=Outcome.UNAVAILABLE,
            rules={name: one.score for name, one in checked.items()},
            reasons={name: one.reason for name, one in checked.items() if one.reason},
        )
        if self._config.fatal_rules and any(
            rules.RULES[name].fatal and one.score == 0 for name, one in checked.items()
        ):
            return replace(verdict, outcome=Outcome.JUDGED, p_correct=0.0, reply="a fatal rule is broken")
        if self._run_cases is None:
            return verdict
        cases = self._run_cases(attempt.code, suite)
        outcomes = {case.outcome for case in cases}
        if CaseOutcome.FAIL in outcomes:
            return replace(verdict, outcome=Outcome.JUDGED, p_correct=P_FAILED, cases=cases)
        if outcomes == {CaseOutcome.PASS}:
            return replace(verdict, outcome=Outcome.JUDGED, p_correct=P_PASSED, cases=cases)
        return replace(verdict, cases=cases)

    def _with_opinions(
        self, cases: tuple[CaseResult, ...], task: Task, attempt: Attempt, opinion: Opinion
    ) -> tuple[CaseResult, ...]:
        """The cases, with the judge's probability of each that the dry run has left open."""
        unknown = [i for i, case in enumerate(cases) if case.outcome is CaseOutcome.UNKNOWN]
        if not unknown or opinion.p_correct is None or not isinstance(self._judge, CaseJudge):
            return cases
        try:
            p = self._judge.judge_cases(task, attempt.code, unknown, opinion.p_correct)
        except EvaluatorError as error:
            logger.warning(
                "tests of task %s stay without a verdict of their own: %s. The solution is judged as a whole; nothing "
                "has to be done",
                *(task.task_id, error),
            )
            return cases
        return tuple(replace(case, p_correct=p.get(i)) for i, case in enumerate(cases))

    def _ask(self, task: Task, attempts: Sequence[Attempt], external: bool) -> list[Opinion]:
        if not attempts:
            return []
        try:
            self._judge.permit(external)
            return self._judge.judge([(task, attempt.code) for attempt in attempts])
        except EvaluatorError as error:
            logger.warning(
                "group of task %s stays unscored: %s. It is not trained on, and the node goes on; if every group does, "
                "see that the judge runs (evaluator.*)",
                *(task.task_id, error),
            )
            return [Opinion(p_correct=None, reply=str(error))] * len(attempts)


def _attempt(text: object) -> Attempt | Outcome:
    if not isinstance(text, str):
        return Outcome.NO_TEXT
    code = prompt.parse(text)
    return Outcome.NO_CODE if code is None else Attempt(text, code)
