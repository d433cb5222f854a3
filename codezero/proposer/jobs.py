"""What a node asks its workers about a problem: whether it is fit, and whether its author's solution vouches for it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from codezero.types import CaseOutcome, CaseResult
from codezero.workers import Death, Job, Workers

READING_S, SETTLING_S = 3.0, 12.0
"""Processor seconds for each job: texts of 2,000 characters, and two dry runs of 4 s."""


class ProblemText(Struct, frozen=True):
    question: str
    tests: str


class Reasoned(Struct, frozen=True):
    """Why not, as a word that reports count under; None for what is fit."""

    reason: str | None


class Solved(Struct, frozen=True):
    """A problem's tests beside the solution that its author gave."""

    solution: str
    tests: str


class Settled(Struct, frozen=True):
    """The tests to publish, and why they are not to be."""

    tests: str
    reason: str | None


WHY_NOT = Job("why_not", ProblemText, Reasoned)
SETTLE = Job("settle", Solved, Settled)


def why_not(workers: Workers, question: str, tests: str) -> str | None:
    """Why a problem is unfit, as a word that reports count under. Raises WorkerError."""
    found = workers.ask(WHY_NOT, ProblemText(question, tests), READING_S)
    return _unchecked(found) if isinstance(found, Death) else found.reason


def settle(workers: Workers, solution: str, tests: str) -> tuple[str, str | None]:
    """Tests that fit the solution, or why there are none. Raises WorkerError."""
    found = workers.ask(SETTLE, Solved(solution, tests), SETTLING_S)
    return (tests, _unchecked(found)) if isinstance(found, Death) else (found.tests, found.reason)


def unvouched(cases: Sequence[CaseResult]) -> str | None:
    """Why a solution with these results does not vouch for its tests, as a word; None if it does."""
    outcomes = {case.outcome for case in cases}
    if CaseOutcome.FAIL in outcomes:
        return "reference_fails"
    return None if outcomes == {CaseOutcome.PASS} else "reference_unknown"


def _unchecked(death: Death) -> str:
    """Of a problem that ends whatever checks it, and of one that could not be checked for another reason."""
    return "hostile" if death.by_itself else "unchecked"
