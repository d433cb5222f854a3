"""Whether a problem's tests hold for the solution that its author gave: interpreted, or run in a sandbox."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from codezero.config import Reference
from codezero.dryrun import dry_run, printed
from codezero.errors import ProposerError, SandboxError
from codezero.proposer.assertions import Calls, read_tests
from codezero.testcases import MAX_SOURCE_CHARS, TestSuite, parse_source, parse_tests
from codezero.types import CaseOutcome, CaseResult

Cases = Callable[[str, TestSuite], Sequence[CaseResult]]


class ReferenceCheck:
    """`proposer.reference` other than none."""

    def __init__(self, kind: Reference, warn: Callable[[str], None]) -> None:
        """Raises ProposerError: this machine has no sandbox, and one was asked for."""
        self._cases: Cases = dry_run
        if kind is Reference.sandbox:
            self._cases = _sandbox(warn)

    def settle(self, solution: str, tests: str) -> tuple[str, str | None]:
        """The tests to publish, and why they are not to be: those that fit the solution, or else, where nothing is to
        be run, with the results that it gives. `tests` are fit (`checks`). Raises ProposerError."""
        reason = self.why_not(solution, tests)
        if reason == "reference_fails" and self._cases is dry_run:
            settled = corrected(solution, tests)
            return (tests, reason) if settled is None else (settled, None)
        return tests, reason

    def why_not(self, solution: str, tests: str) -> str | None:
        """Why the solution does not vouch for the tests, as a word that reports count under; None if it does.

        Raises ProposerError: the sandbox broke down.
        """
        if not solution.strip() or len(solution) > MAX_SOURCE_CHARS:
            return "no_reference"
        try:
            outcomes = {case.outcome for case in self._cases(solution, parse_tests(tests))}
        except SandboxError as error:
            raise ProposerError(str(error)) from error
        if CaseOutcome.FAIL in outcomes:
            return "reference_fails"
        return None if outcomes == {CaseOutcome.PASS} else "reference_unknown"


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


def _sandbox(warn: Callable[[str], None]) -> Cases:
    from codezero.sandbox.run import isolation, run_tests  # here only: whoever does not ask for it never loads it

    try:
        protections = isolation().line()
    except SandboxError as error:
        raise ProposerError(f"proposer.reference=sandbox is impossible here: {error}") from error
    warn(
        f"proposer.reference=sandbox RUNS what the proposer's model writes on this machine; protections: "
        f"{protections}. proposer.reference=dry_run runs nothing"
    )
    return run_tests
