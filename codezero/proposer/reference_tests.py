"""Checks a problem's tests against its author's solution in a worker process, and corrects their expected results."""

from __future__ import annotations

import re

from codezero.evaluate.dryrun import dry_run, printed
from codezero.proposer.jobs import why_tests_unconfirmed
from codezero.tasks.assertions import Calls, read_tests
from codezero.tasks.testcases import MAX_SOURCE_CHARS, comparison, parse_tests


def confirm_or_correct_tests(asked: tuple[str, str]) -> tuple[str, str | None]:
    """Returns the tests of (solution, tests) if the solution passes them, else with the results that it gives, or the
    reason why not. The tests have passed `checks`."""
    solution, tests = asked
    reason = why_not(solution, tests)
    new = corrected(solution, tests) if reason == "reference_fails" else None
    # A function that counts its calls, or defines `print`, fails the results that it seemed to give.
    return (tests, reason) if new is None or why_not(solution, new) is not None else (new, None)


def why_not(solution: str, tests: str) -> str | None:
    """Returns why the solution does not confirm the tests, as the word that reports count it by; None if it does."""
    return why_tests_unconfirmed(dry_run(solution, parse_tests(tests)))


def corrected(solution: str, tests: str) -> str | None:
    """Returns the tests with the results that the solution gives in the dry run, within the grammar of
    `tasks.assertions`; None if these are unknown or say nothing: one is None or no literal value, or all are equal.

    Small models write functions that work far more often than they work out by hand what those return.
    """
    cases = parse_tests(tests).statements
    calls = [compared[0] for compared in map(comparison, cases) if compared is not None]
    if len(calls) < len(cases) or len(solution) > MAX_SOURCE_CHARS // 2:
        return None
    asked = "".join(f"\nprint(repr({call}))" for call in calls)
    lines = (printed(f"{solution}\n{asked}") or "").splitlines()
    if len(lines) != len(calls) or len(set(lines)) < 2 or "None" in lines:
        return None
    new = "\n".join(map(_test, calls, lines))
    return new if isinstance(read_tests(new), Calls) else None


def _test(call: str, result: str) -> str:
    """Returns the test that a call has a result. Floats may differ as right solutions that compute otherwise do, but
    not those with an exponent, of which small ones would be as near to 0."""
    is_float = re.fullmatch(r"-?\d+\.\d+", result) is not None
    return f"assert abs({call} - {result}) < 1e-06" if is_float else f"assert {call} == {result}"
