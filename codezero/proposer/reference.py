"""Checks a problem's tests against its author's solution, interpreted or run in a sandbox."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from codezero.config import Reference
from codezero.errors import ProposerError, SandboxError
from codezero.proposer import jobs
from codezero.tasks.testcases import MAX_SOURCE_CHARS, TestSuite, read_tests
from codezero.types import CaseResult
from codezero.workers import Workers

logger = logging.getLogger(__name__)

RunTests = Callable[[str, TestSuite], Sequence[CaseResult]]


class ReferenceCheck:
    """The check that `proposer.reference` names, if it names any."""

    def __init__(self, kind: Reference, workers: Workers) -> None:
        """Raises ProposerError: `kind` is the sandbox, and this machine has none."""
        self._workers = workers
        self._run_tests = _sandbox() if kind is Reference.sandbox else None

    def confirm_or_correct_tests(self, solution: str, tests: str) -> tuple[str, str | None]:
        """Returns tests to publish and None, or the given tests and the reason why they are not published. Tests that
        the solution fails get, unless a sandbox runs it, the results that the solution gives. `tests` have passed
        `checks`. Raises ProposerError or WorkerError."""
        if not solution.strip() or len(solution) > MAX_SOURCE_CHARS:
            return tests, "no_reference"
        if self._run_tests is None:
            return jobs.confirm_or_correct_tests(self._workers, solution, tests)
        try:
            return tests, jobs.why_tests_unconfirmed(self._run_tests(solution, read_tests(self._workers, tests)))
        except SandboxError as error:
            raise ProposerError(str(error)) from error


def _sandbox() -> RunTests:
    from codezero.sandbox.run import isolation, run_tests  # imported only where the sandbox is asked for

    try:
        protections = isolation()
    except SandboxError as error:
        raise ProposerError(f"proposer.reference=sandbox is impossible here: {error}") from error
    logger.warning(
        "proposer.reference=sandbox RUNS what the proposer's model writes on this machine; protections: %s. "
        "proposer.reference=dry_run runs nothing",
        protections,
    )
    return run_tests
