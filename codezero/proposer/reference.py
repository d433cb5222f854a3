"""Whether a problem's tests hold for the solution that its author gave: interpreted, or run in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codezero.config import Reference
from codezero.errors import ProposerError, SandboxError
from codezero.proposer import jobs
from codezero.tasks.testcases import MAX_SOURCE_CHARS, TestSuite, read_tests
from codezero.types import CaseResult
from codezero.workers import Workers

RunTests = Callable[[str, TestSuite], Sequence[CaseResult]]


class ReferenceCheck:
    """`proposer.reference` other than none."""

    def __init__(self, kind: Reference, workers: Workers, warn: Callable[[str], None]) -> None:
        """Raises ProposerError: this machine has no sandbox, and one was asked for."""
        self._workers = workers
        self._run_tests = _sandbox(warn) if kind is Reference.sandbox else None

    def settle(self, solution: str, tests: str) -> tuple[str, str | None]:
        """The tests to publish, and why they are not to be: those that fit the solution, or else, where nothing is to
        be run, with the results that it gives. `tests` are fit (`checks`). Raises ProposerError or WorkerError."""
        if not solution.strip() or len(solution) > MAX_SOURCE_CHARS:
            return tests, "no_reference"
        if self._run_tests is None:
            return jobs.settle(self._workers, solution, tests)
        try:
            return tests, jobs.unvouched(self._run_tests(solution, read_tests(self._workers, tests)))
        except SandboxError as error:
            raise ProposerError(str(error)) from error


def _sandbox(warn: Callable[[str], None]) -> RunTests:
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
