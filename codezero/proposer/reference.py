"""Whether a problem's tests hold for the solution that its author gave: interpreted, or run in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codezero.config import Reference
from codezero.dryrun import dry_run
from codezero.errors import ProposerError, SandboxError
from codezero.testcases import MAX_SOURCE_CHARS, TestSuite, parse_tests
from codezero.types import CaseOutcome, CaseResult

Cases = Callable[[str, TestSuite], Sequence[CaseResult]]


class ReferenceCheck:
    """`proposer.reference` other than none."""

    def __init__(self, kind: Reference, warn: Callable[[str], None]) -> None:
        """Raises ProposerError: this machine has no sandbox, and one was asked for."""
        self._cases: Cases = dry_run
        if kind is Reference.sandbox:
            self._cases = _sandbox(warn)

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


def _sandbox(warn: Callable[[str], None]) -> Cases:
    from codezero.sandbox.run import isolation, run_tests  # here only: whoever does not ask for it never loads it

    try:
        protections = isolation().line()
    except SandboxError as error:
        raise ProposerError(f"proposer.reference=sandbox is impossible here: {error}") from error
    warn(
        f"proposer.reference=sandbox RUNS what the proposer's model writes on this machine; protections: {protections}"
    )
    return run_tests
