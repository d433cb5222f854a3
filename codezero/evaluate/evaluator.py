"""The evaluator: rules, the dry run and the judge's opinion become verdicts and rewards, a whole round at once."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec.structs import asdict

from codezero.config import EvaluatorConfig, RewardConfig
from codezero.errors import EvaluatorError
from codezero.evaluate.examination import Attempt, Examined, Shown, fingerprint
from codezero.evaluate.examiner import Examiner, Findings
from codezero.evaluate.judge import CaseJudge, Judge, Opinion, Submission
from codezero.evaluate.reward import reward
from codezero.evaluate.rules import breaks_fatal
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.types import (
    CaseOutcome,
    CaseResult,
    FreshCases,
    Outcome,
    Refusal,
    RolloutGroup,
    ScoredGroup,
    SwarmRound,
    Task,
    TaskOrigin,
    Verdict,
)
from codezero.workers import Death

logger = logging.getLogger(__name__)

P_PASSED, P_FAILED = 0.99, 0.01
"""Probability of being right for a solution whose cases all passed, or of which one failed, in a dry run. Of 501 that
`benchmarks/evaluator.py` compared with their execution none was judged wrongly; nothing is certain all the same."""
P_UNSURE = (0.15, 0.85)
"""Between these probabilities nothing is known of an attempt: it was left open by a dry run and by the judge, or fails
fresh tests of which nothing but the reference says that they can be passed."""
SHOWN_BYTES = 4 << 10
"""For each of J, bytes that the judge is shown of a round's open groups of peers: question, tests and programs. A token
has a byte at least. Eight programs as long as MBPP's own (601-974) come to 1.7 KB with question and tests, one group in
twenty to more than 3.8."""


class FrozenEvaluator:
    """ports.Evaluator. Equal answers to a task are judged once.

    A solution is wrong without being asked about if it breaks a fatal rule; otherwise its dry run decides, where that
    comes to an end on every case; the judge is asked for the rest, and then about each test of an own one that was left
    open. All that reads a solution is done by worker processes; here their answers are put together.

    With `evaluator.mask` and a dry run, an attempt that nobody can tell of, be the judge unsure or out of order, has no
    reward and the others of its group do. That gains its author nothing: it is as if the attempt had not been made, and
    one attempt alone counts for nothing. Otherwise an opinion is a reward whatever it is, and a group of which one
    attempt is without an opinion stays unscored.

    Peers' groups cost a round no more than J groups may, however many there are, since training takes J: their dry runs
    share the time of J groups equally, and the judge is asked about the first J of those that they leave open, or fewer
    if these are long (`SHOWN_BYTES`). The others stay unscored.
    """

    def __init__(
        self,
        judge: Judge,
        config: EvaluatorConfig,
        reward_config: RewardConfig,
        progress: Progress,
        examiner: Examiner,
        num_external: float = math.inf,
    ) -> None:
        """`num_external` is J; infinite where nothing is walked, since the judge is then asked about every group."""
        self._judge, self._config, self._reward_config, self._progress = judge, config, reward_config, progress
        self._examiner, self._num_external = examiner, num_external
        self._mask = config.mask and examiner.walk

    def score(self, swarm_round: SwarmRound) -> tuple[ScoredGroup, ...]:
        """All groups of the round, own ones first, each with G verdicts, and G rewards, some of them masked, unless it
        stays unscored."""
        groups = [(group, False) for group in swarm_round.local] + [(group, True) for group in swarm_round.external]
        scored = []
        peers_share = min(1.0, self._num_external / max(len(swarm_round.external), 1))
        number = swarm_round.round_id.number
        for done, one in enumerate(self.score_groups(groups, peers_share, number), start=1):
            scored.append(one)
            self._progress("score", done, len(groups))
        return tuple(scored)

    def score_groups(
        self, groups: Iterable[tuple[RolloutGroup, bool]], peers_share: float = 1.0, round_number: int = 0
    ) -> Iterator[ScoredGroup]:
        """Each (group, whether it is a peer's) of a round with its verdicts and rewards, in order. While the judge is
        asked about one group, workers read those that follow. The numbers are those of `Examiner.examine`."""
        given = ((group, external, tuple(_attempts(group))) for group, external in groups)
        groups_left, bytes_left = self._num_external, self._num_external * SHOWN_BYTES
        for group, external, findings in self._examiner.examine(given, peers_share, round_number):
            open_ones = self._open(group.task, findings)
            if external and open_ones:
                num_bytes = _num_bytes(open_ones.values())
                if groups_left > 0 and num_bytes <= bytes_left:
                    groups_left, bytes_left = groups_left - 1, bytes_left - num_bytes
                else:
                    findings = replace(findings, refused=Refusal.UNASKED)
            yield self._scored(group, external, findings, open_ones)

    def _open(self, task: Task, findings: Findings) -> dict[Attempt, Submission]:
        """What a judge would be asked: the attempts that nothing else settles."""
        if not self._can_be_judged(task):
            return {}
        return {
            attempt: _submission(task, attempt, examined, findings)
            for attempt, examined in findings.attempts.items()
            if isinstance(examined, Examined) and examined.settled(self._config.fatal_rules) is None
        }

    def _can_be_judged(self, task: Task) -> bool:
        """Whether the judge is any use. It was fitted on functions; among contest programs that a dry run had left open
        it told the right ones no better than chance (AUC 0.53 of 16)."""
        return not (self._mask and task.origin is TaskOrigin.CODE_CONTESTS)

    def _scored(
        self, group: RolloutGroup, external: bool, findings: Findings, open_ones: Mapping[Attempt, Submission]
    ) -> ScoredGroup:
        refused = findings.refused
        judged = self._assess(group.task, findings, external, open_ones)
        unread = Verdict(outcome=Outcome.UNAVAILABLE, reply=refused.value if refused else "")
        attempts = [_attempt(rollout.text) for rollout in group.rollouts]
        verdicts = tuple(
            judged.get(attempt, unread) if isinstance(attempt, Attempt) else Verdict(outcome=attempt)
            for attempt in attempts
        )
        rewards = tuple(
            reward(verdict, rollout.finish, self._reward_config) if verdict.tells else None
            for verdict, rollout in zip(verdicts, group.rollouts, strict=True)
        )
        if refused or (None in rewards and not self._mask):
            rewards = ()
        # A copy is not another group because of a masked attempt that was added to it.
        masked = {attempt for attempt, earned in zip(attempts, rewards, strict=False) if earned is None}
        read = (one for attempt, one in findings.attempts.items() if attempt not in masked)
        programs = fingerprint(examined.program for examined in read if isinstance(examined, Examined))
        return ScoredGroup(
            group=group, verdicts=verdicts, rewards=rewards, external=external, refused=refused, programs=programs
        )

    def _assess(
        self, task: Task, findings: Findings, external: bool, open_ones: Mapping[Attempt, Submission]
    ) -> dict[Attempt, Verdict]:
        """The verdict on each distinct attempt at a task."""
        found = {
            attempt: _of_death(examined) if isinstance(examined, Death) else self._verdict(task, examined)
            for attempt, examined in findings.attempts.items()
        }
        unasked = [Opinion(p_correct=None, reply=Refusal.UNASKED.value)] * len(open_ones)
        opinions = unasked if findings.refused else self._ask(task, list(open_ones.values()), external)
        for (attempt, submission), opinion in zip(open_ones.items(), opinions, strict=True):
            cases = found[attempt].cases
            if not external:
                cases = self._with_opinions(cases, submission, opinion)
            outcome, p = self._told(opinion.p_correct)
            found[attempt] = replace(found[attempt], outcome=outcome, p_correct=p, cases=cases, reply=opinion.reply)
        return found

    def _told(self, p: float | None) -> tuple[Outcome, float | None]:
        """What a probability of being right comes to. Where there is a dry run, no opinion is surer than what that
        proves: a right attempt that it could not walk through would be worth less than one that failed."""
        if p is None:
            return Outcome.UNAVAILABLE, None
        if self._examiner.walk:
            p = min(max(p, P_FAILED), P_PASSED)
        low, high = P_UNSURE
        return Outcome.UNSURE if self._mask and low < p < high else Outcome.JUDGED, p

    def _verdict(self, task: Task, examined: Examined) -> Verdict:
        """What can be said without the judge; still unavailable where that is not enough."""
        verdict = Verdict(
            outcome=Outcome.UNAVAILABLE,
            rules=examined.rules,
            reasons=examined.reasons,
            cases=tuple(CaseResult(outcome=case.outcome, reason=case.reason) for case in examined.cases),
            fresh=FreshCases(**asdict(examined.fresh)),
        )
        right = examined.settled(self._config.fatal_rules)
        if right is None:
            if self._can_be_judged(task):
                return verdict
            return replace(verdict, outcome=Outcome.UNSURE, reply="the judge is not asked about programs")
        if self._config.fatal_rules and breaks_fatal(examined.rules):
            return replace(verdict, outcome=Outcome.JUDGED, p_correct=0.0, reply="a fatal rule is broken")
        if examined.fresh.p_right is not None:
            outcome, p = self._told(examined.fresh.p_right)
            return replace(verdict, outcome=outcome, p_correct=p)
        return replace(verdict, outcome=Outcome.JUDGED, p_correct=P_PASSED if right else P_FAILED)

    def _with_opinions(
        self, cases: tuple[CaseResult, ...], submission: Submission, opinion: Opinion
    ) -> tuple[CaseResult, ...]:
        """The cases, with the judge's probability of each that the dry run has left open."""
        is_open = any(case.outcome is CaseOutcome.UNKNOWN for case in cases)
        if not is_open or opinion.p_correct is None or not isinstance(self._judge, CaseJudge):
            return cases
        try:
            p = self._judge.judge_cases(submission, opinion.p_correct)
        except EvaluatorError as error:
            logger.warning(
                "tests of task %s stay without a verdict of their own: %s. The solution is judged as a whole; nothing "
                "has to be done",
                *(submission.task.task_id, error),
            )
            return cases
        return tuple(replace(case, p_correct=p.get(i)) for i, case in enumerate(cases))

    def _ask(self, task: Task, submissions: Sequence[Submission], external: bool) -> list[Opinion]:
        if not submissions:
            return []
        try:
            self._judge.permit(external)
            return self._judge.judge(submissions)
        except EvaluatorError as error:
            logger.warning(
                "attempts at task %s stay without a verdict: %s. They are not trained on, and the node goes on; if it "
                "comes every round, see that the judge runs (evaluator.*)",
                *(task.task_id, error),
            )
            return [Opinion(p_correct=None, reply=str(error))] * len(submissions)


def walked(examiner: Examiner, group: RolloutGroup) -> list[bool | None]:
    """Of each rollout of an own group whether it is right, by rules and dry run alone; None where they cannot tell."""
    attempts = tuple(_attempts(group))
    if not attempts:
        return [False] * len(group.rollouts)
    ((_, _, findings),) = examiner.examine([(group, False, attempts)])
    told: list[bool | None] = []
    for rollout in group.rollouts:
        attempt = _attempt(rollout.text)
        found = findings.attempts.get(attempt) if isinstance(attempt, Attempt) else None
        if isinstance(found, Examined):
            told.append(found.settled(fatal_rules=True))
        else:
            told.append(None if isinstance(found, Death) and not found.by_itself else False)
    return told


def _num_bytes(submissions: Collection[Submission]) -> int:
    """What a judge is shown of attempts at one task, in UTF-8."""
    texts = {text for one in submissions for text in (one.shown.question, one.shown.tests, one.shown.code)}
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _submission(task: Task, attempt: Attempt, examined: Examined, findings: Findings) -> Submission:
    """As the judge is to see it; as it is where it cannot be printed."""
    shown = Shown(question=task.question, tests=task.tests, code=attempt.code)
    if examined.shown is not None:
        shown = Shown(question=findings.question, tests=findings.tests, code=examined.shown)
    num_passed = sum(case.outcome is CaseOutcome.PASS for case in examined.cases)
    passed = num_passed / max(len(examined.cases), 1)
    return Submission(task=task, code=attempt.code, shown=shown, sides=examined.sides, passed=passed)


def _of_death(death: Death) -> Verdict:
    """An attempt that ends its reader has failed; of one that could not be read for another reason nothing is known."""
    reply = f"it ends what reads it: {death.cause.value} {death.detail}" if death.by_itself else death.cause.value
    if not death.by_itself:
        return Verdict(outcome=Outcome.UNAVAILABLE, reply=f"it could not be read: {reply}")
    return Verdict(outcome=Outcome.JUDGED, p_correct=P_FAILED, reply=reply)


def _attempts(group: RolloutGroup) -> Iterator[Attempt]:
    """The group's distinct attempts."""
    found = dict.fromkeys(_attempt(rollout.text) for rollout in group.rollouts)
    return (attempt for attempt in found if isinstance(attempt, Attempt))


def _attempt(text: object) -> Attempt | Outcome:
    if not isinstance(text, str):
        return Outcome.NO_TEXT
    code = prompt.parse(text)
    return Outcome.NO_CODE if code is None else Attempt(text, code)
