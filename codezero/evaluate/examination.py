"""What a node asks its workers about a task's attempts, and what they answer: all that reading them can tell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from codezero.evaluate.rules import RULES, breaks_fatal
from codezero.types import CaseOutcome, Recalled, TaskOrigin
from codezero.workers.job import Job

MAX_CASES = 16
"""Most tests of a solution that the judge is asked about one by one; a peer's task may have hundreds."""
MIN_TOKENS = 50
"""Tokens that the distinct programs of a group have together, from which on an equal group is a copy of it: of 128
samples no two programs so long were equal, and of shorter ones some were (`benchmarks.copies`)."""
MAX_REASONS = 100
"""Tests of an attempt of which it is said why they did not pass."""
ATTEMPT_S = 2.0
"""Processor seconds of the dry run for each attempt of a group, all of them together: one may take nearly twice an
even share of what is left, and `dryrun.Budget.total_seconds` at most."""
READING_S = 0.5
"""Processor seconds for reading one attempt: parsing, rules, what the judge is shown. Hostile texts took 0.3."""
MARGIN_S = 3.0
"""Processor seconds after that, until the kernel ends the worker."""
MOST_OF_FRESH = 0.7
P_FRESH_FAILED, P_FRESH_IGNORED, P_FRESH_DOUBTFUL = 0.12, 0.01, 0.5
"""Probability of being right for an attempt that passes its tests and fails a fresh one: where another attempt passes
that; where none does, and it fails `MOST_OF_FRESH` of them or gives one value for all; where it fails fewer. As
`python -m benchmarks.fresh` found: one of eight of MBPP's solutions is wrong itself beyond its tests. So of right
programs 0 to 12 in 100 are of the first kind, and 83 of subtly wrong ones; of the second kind 0, and 95 of tables; of
the third 12, and 87 of subtly wrong ones, which is even where one in eight programs that pass their tests is wrong."""
P_RECALLED = 0.05
"""The same for a program that seems to know its examples by heart, and of which nothing else is known
(`python -m benchmarks.recalled`): of right programs to 50 problems none did, so few do."""

Score = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Reason = Annotated[str, Meta(max_length=240)]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is judged: the whole answer, and the program in it."""

    text: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What of a task and a solution the judge gets to see, for `prompts.evaluator`."""

    question: str
    tests: str
    code: str


class Examine(Struct, frozen=True, kw_only=True):
    """A task and its distinct attempts; without any, the tests are walked with functions that do nothing."""

    origin: TaskOrigin
    question: str
    tests: str
    attempts: tuple[Attempt, ...]
    walk: bool
    """Whether to make a dry run."""
    fatal_rules: bool
    """Whether a broken fatal rule settles it."""
    show: bool
    """Whether the judge is to be shown what nothing has settled."""
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Of the usual time for dry runs."""
    more_tests: str = ""
    """Examples for the dry run only; neither the rules nor the judge see them."""
    reference: str | None = None
    """A solution from elsewhere that gives the results of fresh tests; without attempts, it is walked itself."""
    num_fresh: Count = 0
    """Most fresh tests that are drawn; with 0, programs are not walked over other inputs either."""
    seed: bytes = b""
    """Equal ones draw equal fresh tests and inputs."""

    @property
    def walk_s(self) -> float:
        """Processor seconds that all dry runs together may take."""
        return self.share * ATTEMPT_S * max(len(self.attempts), 2)

    @property
    def cpu_s(self) -> float:
        """Processor seconds after which the worker is ended."""
        return self.walk_s + READING_S * len(self.attempts) + MARGIN_S


class ExaminedCase(Struct, frozen=True, array_like=True):
    """types.CaseResult of one test."""

    outcome: CaseOutcome
    reason: Reason = ""


class FreshCounts(Struct, frozen=True, array_like=True):
    """types.FreshCases of one attempt."""

    drawn: Count = 0
    passed: Count = 0
    failed: Count = 0
    doubtful: Count = 0
    unknown: Count = 0
    constant: bool = False
    recalled: Recalled = Recalled.UNTRIED
    unverified: bool = False

    @property
    def p_right(self) -> float | None:
        """The probability of being right; None where no fresh test was failed, and nothing seems to be remembered."""
        if self.recalled is Recalled.TABLE:
            return P_RECALLED
        if self.recalled is Recalled.UNTOLD:
            return P_FRESH_DOUBTFUL
        if self.failed:
            return P_FRESH_FAILED
        if self.doubtful and (self.constant or self.doubtful > MOST_OF_FRESH * (self.passed + self.doubtful)):
            return P_FRESH_IGNORED
        return P_FRESH_DOUBTFUL if self.doubtful else None


class ProgramPrint(Struct, frozen=True, array_like=True):
    """What of an attempt is the same in a copy of it (`copies.program_of`)."""

    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]
    num_tokens: Count


class Examined(Struct, frozen=True, kw_only=True):
    """What reading one attempt came to."""

    rules: dict[str, Score]
    reasons: dict[str, Reason]
    """Why a rule's score is below 1."""
    cases: tuple[ExaminedCase, ...] = ()
    """What the dry run of each test came to; empty without one."""
    fresh: FreshCounts = FreshCounts()
    shown: str | None = None
    """The program for the judge's eyes; None where it is not asked, or the program cannot be printed."""
    sides: tuple[tuple[int, str, str], ...] = ()
    """Number, left and right side of the tests `assert left == right` that the dry run left open."""
    program: ProgramPrint | None = None
    """None if it does not parse."""

    def __post_init__(self) -> None:
        if not self.rules.keys() <= RULES.keys() or not self.reasons.keys() <= RULES.keys():
            raise ValueError("there is no such rule")

    def settled(self, fatal_rules: bool) -> bool | None:
        """Whether the attempt is right, where that can be told without the judge."""
        outcomes = {case.outcome for case in self.cases}
        if (fatal_rules and breaks_fatal(self.rules)) or CaseOutcome.FAIL in outcomes:
            return False
        if outcomes != {CaseOutcome.PASS}:
            return None
        if self.fresh.p_right is not None:
            return self.fresh.p_right >= 0.5
        return None if self.fresh.unknown else True


class ExaminationReply(Struct, frozen=True, kw_only=True):
    """The answer to `Examine`."""

    question: str = ""
    """For the judge's eyes, as are `tests`; empty where it is not asked about any attempt that can be printed."""
    tests: str = ""
    attempts: tuple[Examined, ...] = ()
    """In the order of the request."""


def fingerprint(programs: Iterable[ProgramPrint | None]) -> bytes:
    """A group's, equal for copies of it whatever the order of its attempts; those that do not parse count for nothing.
    Empty if the programs are so short that strangers write the same."""
    distinct = {program for program in programs if program is not None}
    if sum(program.num_tokens for program in distinct) < MIN_TOKENS:
        return b""
    return hashlib.sha256(b"".join(sorted(program.digest for program in distinct))).digest()


EXAMINE = Job("examine", Examine, ExaminationReply)
