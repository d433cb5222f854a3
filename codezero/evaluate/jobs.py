"""The request about a task's attempts that a node sends to its workers, and the reply with what they have read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from codezero.evaluate.rules import RULES, breaks_fatal
from codezero.types import CaseOutcome, CaseResult, Count, FreshCases, Memorised, TaskOrigin
from codezero.workers.job import Job

MIN_TOKENS = 50
"""The fewest tokens of a group's distinct programs, summed, at which an equal group counts as a copy. Of 128 samples no
two programs of this length or more were equal, and some shorter ones were (`benchmarks.copies`)."""
MAX_REASONS = 100
"""The number of an attempt's tests, from the first on, whose reasons for not passing are kept."""
ATTEMPT_S = 2.0
"""Processor seconds of dry runs per attempt of a group, for all of them together. One attempt may take nearly twice an
even share of the time left, and at most `dryrun.Budget.total_seconds`."""
READING_S = 0.5
"""Processor seconds for reading one attempt: parsing it, applying the rules, and making the judge's texts. Hostile
texts took 0.3."""
MARGIN_S = 3.0
"""Processor seconds beyond those for reading and dry runs until the kernel ends the worker."""
P_PASSED, P_FAILED = 0.99, 0.01
"""The probability that a solution is right if all cases passed in its dry run, and if one failed. Of 501 solutions that
`benchmarks/evaluator.py` compared with their execution none was judged wrongly; still nothing is certain."""
MOST_OF_FRESH = 0.7
P_FRESH_FAILED, P_FRESH_MOSTLY_FAILED, P_FRESH_DOUBTFUL = 0.12, 0.01, 0.5
"""The probability of being right for an attempt that passes its tests and fails a fresh one: FAILED if another attempt
passes that one; MOSTLY_FAILED if none does, and it fails more than `MOST_OF_FRESH` of them or gives one value for all;
DOUBTFUL if it fails fewer. `python -m benchmarks.fresh` found that one in eight of MBPP's own solutions is wrong beyond
its tests. So the first case has 0 to 12 % of right programs and 83 % of subtly wrong ones; the second 0 % and 95 % of
tables of answers; the third 12 % and 87 % of subtly wrong ones: equally many of both if one in eight is wrong."""
P_MEMORISED = 0.05
"""The same for a program that seems to contain the answers to its examples, if nothing else is known of it. No right
program for 50 problems seemed to (`python -m benchmarks.recalled`)."""

Score = Annotated[float, Meta(ge=0, le=1)]
Reason = Annotated[str, Meta(max_length=240)]


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a task: the whole answer, and the program in it."""

    text: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The texts of a task and a solution that the judge sees, for `prompts.evaluator`."""

    question: str
    tests: str
    code: str


class ReadRequest(Struct, frozen=True, kw_only=True):
    """A task and its distinct attempts. Without any, the dry run of the tests uses functions that do nothing."""

    origin: TaskOrigin
    question: str
    tests: str
    attempts: tuple[Attempt, ...]
    dry_run: bool
    """True if attempts get a dry run."""
    fatal_rules: bool
    """True if an attempt that breaks a fatal rule is wrong without a dry run."""
    show: bool
    """True if the reply shall have the texts for the judge, for attempts that nothing else decides."""
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """The share of the usual time for dry runs, in 0..1."""
    more_tests: str = ""
    """Examples for the dry run only; neither the rules nor the judge see them."""
    reference: str | None = None
    """A solution from elsewhere that gives the results of fresh tests; it gets a dry run even without attempts."""
    num_fresh: Count = 0
    """The most fresh tests that are drawn; at 0 programs get no dry run with other inputs either."""
    seed: bytes = b""
    """The random seed; equal seeds draw equal fresh tests and inputs."""
    environment: str = ""
    """The module of the environment whose rule scores the attempts, which nothing else then reads."""

    @property
    def dry_run_s(self) -> float:
        """Processor seconds that all dry runs together may take."""
        return self.share * ATTEMPT_S * max(len(self.attempts), 2)

    @property
    def cpu_s(self) -> float:
        """Processor seconds after which the worker is ended."""
        return self.dry_run_s + READING_S * len(self.attempts) + MARGIN_S


def p_by_fresh(fresh: FreshCases) -> float | None:
    """Returns the probability that an attempt with these results is right; None if it failed no fresh test and seems to
    hold no answers of the visible ones."""
    if fresh.recalled is Memorised.YES:
        return P_MEMORISED
    if fresh.recalled is Memorised.UNKNOWN:
        return P_FRESH_DOUBTFUL
    if fresh.failed:
        return P_FRESH_FAILED
    if fresh.doubtful and (fresh.constant or fresh.doubtful > MOST_OF_FRESH * (fresh.passed + fresh.doubtful)):
        return P_FRESH_MOSTLY_FAILED
    return P_FRESH_DOUBTFUL if fresh.doubtful else None


class ProgramPrint(Struct, frozen=True, array_like=True):
    """A fingerprint of a program that is the same for its copies (`copies.program_of`)."""

    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]
    num_tokens: Count


class AttemptRead(Struct, frozen=True, kw_only=True):
    """The results of reading one attempt."""

    rules: dict[str, Score]
    reasons: dict[str, Reason]
    """The reason for each rule whose score is below 1."""
    cases: tuple[CaseResult, ...] = ()
    """The dry run's result of each test; empty without a dry run."""
    fresh: FreshCases = FreshCases()
    shown: str | None = None
    """The program as the judge sees it; None if it is not asked, or the program cannot be printed."""
    program: ProgramPrint | None = None
    """The program's fingerprint; None if it does not parse."""
    is_program: bool = False
    """True if the tests give it an input and compare what it prints."""
    score: Score | None = None
    """The score by the rule of the task's environment; None if the task has none."""

    def __post_init__(self) -> None:
        if not self.rules.keys() <= RULES.keys() or not self.reasons.keys() <= RULES.keys():
            raise ValueError("there is no such rule")

    def probability(self, fatal_rules: bool) -> float | None:
        """Returns the probability that the attempt is right; None if only the judge can tell. It is 0 if a fatal rule
        is broken. A small table of answers is wrong without a dry run, and doubtful unless it passes fresh tests."""
        if self.score is not None:
            return self.score
        if fatal_rules and breaks_fatal(self.rules):
            return 0.0
        outcomes = {case.outcome for case in self.cases}
        counts_table = fatal_rules and self.has_small_table
        if CaseOutcome.FAIL in outcomes or (counts_table and not outcomes):
            return P_FAILED
        p = p_by_fresh(self.fresh)
        if p is None and counts_table and (self.fresh.unknown or not self.fresh.passed):
            p = P_FRESH_DOUBTFUL
        if p is None and outcomes == {CaseOutcome.PASS} and not self.fresh.unknown:
            p = P_PASSED
        return p

    def settled(self, fatal_rules: bool) -> bool | None:
        """Returns True if the attempt passes all that was tried, False if it is wrong, None if only the judge can tell.
        One that passes may be doubtful still, by `probability`."""
        p = self.probability(fatal_rules)
        return None if p is None else p >= 0.5

    @property
    def has_small_table(self) -> bool:
        """True if it contains the tests' answers in a small table, as right solutions may: of names of days, for
        example."""
        return 0 < self.rules.get("hardcoded", 1) < 1


class ReadReply(Struct, frozen=True, kw_only=True):
    """The answer to `ReadRequest`."""

    question: str = ""
    """The question as the judge sees it. It and `tests` are empty if the judge is asked about none."""
    tests: str = ""
    attempts: tuple[AttemptRead, ...] = ()
    """The results in the order of the request's attempts."""


def fingerprint(programs: Iterable[ProgramPrint | None]) -> bytes:
    """Returns a group's fingerprint, the same for its copies in whatever order of attempts. Those that do not parse are
    left out. It is empty if the programs are so short that independent groups may write the same."""
    distinct = {program for program in programs if program is not None}
    if sum(program.num_tokens for program in distinct) < MIN_TOKENS:
        return b""
    return hashlib.sha256(b"".join(sorted(program.digest for program in distinct))).digest()


READ_ATTEMPTS = Job("read_attempts", ReadRequest, ReadReply)
