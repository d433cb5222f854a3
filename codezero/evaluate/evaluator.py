"""The evaluator: makes verdicts and rewards of a whole round from rules, dry runs and the judge's opinions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codezero.config import EvaluatorConfig, RewardConfig
from codezero.evaluate.jobs import P_FAILED, P_FRESH_DOUBTFUL, P_PASSED, Attempt, AttemptRead, Shown, fingerprint
from codezero.evaluate.judge import Judge, Opinion, Submission, ask
from codezero.evaluate.reading import LOOK_AHEAD, AttemptReader, Findings
from codezero.evaluate.reward import reward
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.types import CaseOutcome, Outcome, Refusal, RolloutGroup, ScoredGroup, SwarmRound, Task, Verdict
from codezero.workers import Death

P_UNSURE = (0.15, 0.85)
"""The probabilities between which an attempt counts as unknown: the dry run and the judge left it open, or it fails
fresh tests that only the reference is known to pass."""
SHOWN_BYTES = 4 << 10
"""The bytes of questions, tests and programs of peers' open groups that the judge is shown in a round, for each of J. A
token has at least one byte. Eight programs as long as MBPP's own (601-974) take 1.7 KB with question and tests; one
group in twenty takes more than 3.8."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A group that workers have read."""

    group: RolloutGroup
    external: bool
    findings: Findings
    open_ones: Mapping[Attempt, Submission]
    """The attempts that nothing but the judge decides."""

    @property
    def asked(self) -> tuple[Submission, ...]:
        """The solutions that the judge is asked about; none of a refused group."""
        return () if self.findings.refused else tuple(self.open_ones.values())


class FrozenEvaluator:
    """Scores groups with a frozen judge. It judges equal answers to a task once.

    A solution that breaks a fatal rule is wrong. Otherwise its dry run decides if every case ends in it. The judge
    decides the rest. Worker processes do all that reads a solution; this class puts their answers together. Tasks of an
    environment are scored by its rule alone.

    With `evaluator.mask` and a dry run, an attempt that cannot be decided, because the judge is unsure or fails, has no
    reward, and the others of its group have theirs. Its author gains nothing by it: the effect is that of a group
    without the attempt, and a single attempt left has no effect. Without mask or dry run every opinion makes a reward,
    and a group stays unscored if one of its attempts has no opinion.

    All peers' groups together cost a round at most as much as J groups, since training takes J: their dry runs share
    the time of J groups equally, and the judge is asked about the first J groups that these leave open, or fewer if the
    groups are long (`SHOWN_BYTES`). The others stay unscored.
    """

    def __init__(
        self,
        judge: Judge | None,
        config: EvaluatorConfig,
        reward_config: RewardConfig,
        progress: Progress,
        attempt_reader: AttemptReader,
        num_external: float = math.inf,
        at_once: int = 1,
    ) -> None:
        """Without a judge what rules and dry run leave open is masked, which needs `evaluator.mask` and a dry run.
        `num_external` is J; it is infinite without dry runs, since the judge is then asked about every group. Groups
        wait for others until so many solutions as `at_once` are open, which the judge is then asked about together."""
        self._at_once = at_once
        self._judge, self._config, self._reward_config, self._progress = judge, config, reward_config, progress
        self._attempt_reader, self._num_external = attempt_reader, num_external
        self._mask = config.mask and attempt_reader.dry_run

    def score(self, swarm_round: SwarmRound) -> tuple[ScoredGroup, ...]:
        """Returns all groups of the round, own ones first. Each has G verdicts and, unless it stays unscored, G
        rewards, of which some may be masked (None)."""
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
        """Yields each group of a round with its verdicts and rewards, in order. `groups` are (group, True if it is a
        peer's). While the judge is asked about some groups, workers read the next ones. `peers_share` and
        `round_number` are those of `AttemptReader.read`."""
        given = ((group, external, tuple(_attempts(group))) for group, external in groups)
        waiting: list[_Read] = []
        groups_left, bytes_left = self._num_external, self._num_external * SHOWN_BYTES
        for group, external, findings in self._attempt_reader.read(given, peers_share, round_number):
            open_ones = self._open(group.task, external, findings)
            if external and open_ones:
                num_bytes = _num_bytes(open_ones.values())
                if groups_left > 0 and num_bytes <= bytes_left:
                    groups_left, bytes_left = groups_left - 1, bytes_left - num_bytes
                else:
                    findings = replace(findings, refused=Refusal.UNASKED)
            waiting.append(_Read(group, external, findings, open_ones))
            num_open = sum(len(one.asked) for one in waiting)
            if not 0 < num_open < self._at_once or len(waiting) == LOOK_AHEAD:
                yield from self._judged(waiting)
                waiting = []
        yield from self._judged(waiting)

    def _judged(self, groups: Sequence[_Read]) -> Iterator[ScoredGroup]:
        """Yields the groups with verdicts and rewards. The judge is asked about all of them together."""
        asked = [one.asked for one in groups]
        opinions = ask(self._judge, asked) if self._judge is not None else [[] for _ in asked]
        for one, told in zip(groups, opinions, strict=True):
            yield self._scored(one, told)

    def _open(self, task: Task, external: bool, findings: Findings) -> dict[Attempt, Submission]:
        """Returns a submission to the judge for each attempt that nothing else decides."""
        return {
            attempt: _submission(task, external, attempt, result, findings)
            for attempt, result in findings.attempts.items()
            if isinstance(result, AttemptRead)
            and result.settled(self._config.fatal_rules) is None
            and self._can_be_judged(result)
        }

    def _can_be_judged(self, result: AttemptRead) -> bool:
        """Returns True if a judge can tell anything. It was fitted on functions; of 16 contest programs that a dry
        run had left open it told right from wrong no better than chance (AUC 0.53). The form of the tests decides
        what is a program, since a peer may claim any origin."""
        return self._judge is not None and not (self._mask and result.is_program)

    def _scored(self, one: _Read, opinions: Sequence[Opinion]) -> ScoredGroup:
        group, findings, refused = one.group, one.findings, one.findings.refused
        judged = self._assess(one, opinions)
        unread = Verdict(outcome=Outcome.UNAVAILABLE, reply=refused.value if refused else "")
        attempts = [_attempt(group.task, rollout.text) for rollout in group.rollouts]
        verdicts = tuple(
            judged.get(attempt, unread) if isinstance(attempt, Attempt) else Verdict(outcome=attempt)
            for attempt in attempts
        )
        rewards = tuple(
            reward(verdict, rollout.finish, self._reward_config) if verdict.is_decided else None
            for verdict, rollout in zip(verdicts, group.rollouts, strict=True)
        )
        if refused or (None in rewards and not self._mask):
            rewards = ()
        # A masked attempt that was added to a copy must not make it a different group.
        masked = {attempt for attempt, earned in zip(attempts, rewards, strict=False) if earned is None}
        read = (one for attempt, one in findings.attempts.items() if attempt not in masked)
        programs = fingerprint(result.program for result in read if isinstance(result, AttemptRead))
        return ScoredGroup(
            group=group, verdicts=verdicts, rewards=rewards, external=one.external, refused=refused, programs=programs
        )

    def _assess(self, one: _Read, opinions: Sequence[Opinion]) -> dict[Attempt, Verdict]:
        """Returns the verdict on each distinct attempt of a group. `opinions` are those that the judge was asked for,
        in the order of the open attempts."""
        found = {
            attempt: _of_death(result) if isinstance(result, Death) else self._verdict(result)
            for attempt, result in one.findings.attempts.items()
        }
        if one.findings.refused:
            opinions = [Opinion(p_correct=None, reply=Refusal.UNASKED.value)] * len(one.open_ones)
        for attempt, opinion in zip(one.open_ones, opinions, strict=True):
            outcome, p = self._told(opinion.p_correct)
            found[attempt] = replace(found[attempt], outcome=outcome, p_correct=p, reply=opinion.reply)
        return found

    def _told(self, p: float | None) -> tuple[Outcome, float | None]:
        """Returns outcome and probability for a probability that an attempt is right, such as a judge's. With dry runs
        no opinion is surer than their results: else a right attempt that a dry run left open could be worth less than a
        failed one."""
        if p is None:
            return Outcome.UNAVAILABLE, None
        if self._attempt_reader.dry_run:
            p = min(max(p, P_FAILED), P_PASSED)
        low, high = P_UNSURE
        return Outcome.UNSURE if self._mask and low < p < high else Outcome.JUDGED, p

    def _verdict(self, result: AttemptRead) -> Verdict:
        """Returns the verdict without the judge; its outcome is unavailable if only the judge can decide."""
        verdict = Verdict(
            outcome=Outcome.UNAVAILABLE,
            rules=result.rules,
            reasons=result.reasons,
            cases=result.cases,
            fresh=result.fresh,
        )
        p = result.probability(self._config.fatal_rules)
        if p is None:
            if self._can_be_judged(result):
                return verdict
            why = "no judge is asked" if self._judge is None else "the judge is not asked about programs"
            return replace(verdict, outcome=Outcome.UNSURE, reply=why)
        if result.score is not None:
            return replace(verdict, outcome=Outcome.JUDGED, p_correct=p)
        if p == 0.0:
            return replace(verdict, outcome=Outcome.JUDGED, p_correct=p, reply="a fatal rule is broken")
        outcome, p = self._told(p)
        return replace(verdict, outcome=outcome, p_correct=p)


def proven(attempt_reader: AttemptReader, group: RolloutGroup) -> list[bool | None]:
    """Returns for each rollout of an own group whether it is right by rules and dry run alone; None if these cannot
    tell."""
    attempts = tuple(_attempts(group))
    if not attempts:
        return [False] * len(group.rollouts)
    ((_, _, findings),) = attempt_reader.read([(group, False, attempts)])
    told: list[bool | None] = []
    for rollout in group.rollouts:
        attempt = _attempt(group.task, rollout.text)
        found = findings.attempts.get(attempt) if isinstance(attempt, Attempt) else None
        if isinstance(found, AttemptRead):
            is_doubtful = found.score is None and found.probability(fatal_rules=True) == P_FRESH_DOUBTFUL
            told.append(None if is_doubtful else found.settled(fatal_rules=True))
        else:
            fails = found.is_jobs_fault if isinstance(found, Death) else not isinstance(attempt, Attempt)
            told.append(False if fails else None)
    return told


def _num_bytes(submissions: Collection[Submission]) -> int:
    """Returns the size in bytes, as UTF-8, of the texts of attempts at one task that a judge is shown."""
    texts = {text for one in submissions for text in (one.shown.question, one.shown.tests, one.shown.code)}
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _submission(task: Task, external: bool, attempt: Attempt, result: AttemptRead, findings: Findings) -> Submission:
    """Returns an attempt with the texts that the judge sees; the original ones if they could not be made."""
    shown = Shown(question=task.question, tests=task.tests, code=attempt.code)
    if result.shown is not None:
        shown = Shown(question=findings.question, tests=findings.tests, code=result.shown)
    num_passed = sum(case.outcome is CaseOutcome.PASS for case in result.cases)
    passed = num_passed / max(len(result.cases), 1)
    return Submission(task=task, code=attempt.code, shown=shown, external=external, passed=passed)


def _of_death(death: Death) -> Verdict:
    """Returns the verdict on an attempt whose worker died: failed if the attempt ended it, unavailable if something
    else did."""
    if not death.is_jobs_fault:
        return Verdict(outcome=Outcome.UNAVAILABLE, reply=f"it could not be read: {death.cause.value}")
    reply = f"it ends what reads it: {death.cause.value} {death.detail}"
    return Verdict(outcome=Outcome.JUDGED, p_correct=P_FAILED, reply=reply)


def _attempts(group: RolloutGroup) -> Iterator[Attempt]:
    """Returns the group's distinct attempts."""
    found = dict.fromkeys(_attempt(group.task, rollout.text) for rollout in group.rollouts)
    return (attempt for attempt in found if isinstance(attempt, Attempt))


def _attempt(task: Task, text: object) -> Attempt | Outcome:
    if not isinstance(text, str):
        return Outcome.NO_TEXT
    if task.environment:
        return Attempt(text, "")
    code = prompt.parse(text)
    return Outcome.NO_CODE if code is None else Attempt(text, code)
