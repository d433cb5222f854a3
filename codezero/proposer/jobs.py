"""The workers' jobs on a problem: deciding whether it is fit, and running its author's solution on its tests."""

from __future__ import annotations

from collections.abc import Sequence

from codezero.types import CaseOutcome, CaseResult
from codezero.workers import Death, Job, Workers

READING_S, CONFIRMING_S = 3.0, 16.0
"""The limits of the jobs in processor seconds: for texts of 2,000 characters, and for three dry runs of 4 s."""


WHY_NOT = Job("why_not", tuple[str, str], str)
"""Asks why a problem is unfit, given question and tests; the answer is empty for a fit one."""
CONFIRM_OR_CORRECT = Job("confirm_or_correct_tests", tuple[str, str], tuple[str, str | None])
"""Asks for the tests to publish, given solution and tests, or the reason why they are not published."""

UNCHECKED = "unchecked"
"""The reason for a problem whose check failed by no fault of its own, which earns nothing and loses nothing."""


def why_not(workers: Workers, question: str, tests: str) -> str | None:
    """Returns why a problem is unfit, as the word that reports count it by; None if it is fit. Raises WorkerError."""
    found = workers.ask(WHY_NOT, (question, tests), READING_S)
    return _unchecked(found) if isinstance(found, Death) else found or None


def confirm_or_correct_tests(workers: Workers, solution: str, tests: str) -> tuple[str, str | None]:
    """Returns the tests to publish and None, or the given tests and the reason why they are not published. Raises
    WorkerError."""
    found = workers.ask(CONFIRM_OR_CORRECT, (solution, tests), CONFIRMING_S)
    return (tests, _unchecked(found)) if isinstance(found, Death) else found


def why_tests_unconfirmed(cases: Sequence[CaseResult]) -> str | None:
    """Returns why a solution with these results does not confirm its tests, as a word; None if it does."""
    outcomes = {case.outcome for case in cases}
    if CaseOutcome.FAIL in outcomes:
        return "reference_fails"
    return None if outcomes == {CaseOutcome.PASS} else "reference_unknown"


def _unchecked(death: Death) -> str:
    """Returns the reason for a problem that could not be checked: `hostile` if it ended the worker itself."""
    return "hostile" if death.is_jobs_fault else UNCHECKED
