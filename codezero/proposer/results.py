"""A problem's tests beside the solution that its author gave, in a worker process: do they hold, and what would?"""

from __future__ import annotations

import ast

from codezero.evaluate.dryrun import dry_run, printed
from codezero.proposer.assertions import Calls, read_tests
from codezero.proposer.jobs import Settled, Solved, unvouched
from codezero.tasks.testcases import MAX_SOURCE_CHARS, parse_source, parse_tests


def settle(asked: Solved) -> Settled:
    """The tests if the solution passes them, else with the results that it gives. `tests` are fit (`checks`)."""
    reason = why_not(asked.solution, asked.tests)
    settled = corrected(asked.solution, asked.tests) if reason == "reference_fails" else None
    return Settled(asked.tests, reason) if settled is None else Settled(settled, None)


def why_not(solution: str, tests: str) -> str | None:
    """Why the solution does not vouch for the tests, as a word that reports count under; None if it does."""
    return unvouched(dry_run(solution, parse_tests(tests)))


def corrected(solution: str, tests: str) -> str | None:
    """Tests that are fit (`checks`) with the results that the solution gives, interpreted; None where these cannot be
    told or say nothing: one is None or no plain value, or all are the same.

    Small models write functions that work far more often than they work out by hand what those return.
    """
    tree = parse_source(tests)
    if tree is None or len(solution) > MAX_SOURCE_CHARS // 2:
        return None
    calls = [_compared(statement) for statement in tree.body]
    asked = "".join(f"\nprint(repr({call}))" for call in calls)
    lines = (printed(f"{solution}\n{asked}") or "").splitlines()
    if None in calls or len(lines) != len(calls) or len(set(lines)) < 2 or "None" in lines:
        return None
    settled = "\n".join(f"assert {call} == {line}" for call, line in zip(calls, lines, strict=True))
    return settled if isinstance(read_tests(settled), Calls) else None


def _compared(statement: ast.stmt) -> str | None:
    """What an assert compares with a value written out, as source."""
    test = statement.test if isinstance(statement, ast.Assert) else None
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return None
    return ast.unparse(test.left)
