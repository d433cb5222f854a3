"""The workers' job of trying solutions on written cases and on inputs like the shown ones."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from codezero.prompts import solver as prompt
from codezero.types import CaseOutcome, Task, TaskOrigin
from codezero.workers import Death, Job, Workers

SECONDS = 4.0
"""Processor seconds for the dry runs of a solution; they end at the latest after those of all solutions."""


class Trial(Struct, array_like=True, frozen=True, kw_only=True):
    """A problem, cases that were written for it, and the solutions to try."""

    origin: TaskOrigin
    tests: str
    """The task's tests, which tell the name of the function and the setup that cases may need."""
    shown: str
    """Those of the tests that the question shows."""
    cases: tuple[str, ...] = ()
    programs: tuple[str, ...]
    seconds: float
    """Processor seconds for all dry runs."""
    num_inputs: int = 0
    """The most inputs like the shown ones on which the programs give their values."""


class TriedProgram(Struct, array_like=True, frozen=True, kw_only=True):
    """The results of a solution's dry runs."""

    passes_shown: bool
    """True if it parses and passes the shown tests."""
    cases: tuple[CaseOutcome, ...]
    """Its results on the cases that are usable (`Tried.usable`)."""
    reasons: tuple[str, ...]
    """The reasons for these, empty for a case that passes; partly untrusted text."""
    digest: bytes
    """A fingerprint of the program, the same for copies; empty if it does not parse."""
    values: tuple[str, ...]
    """The `repr` of its results on inputs like the shown ones; an error or a long value is empty."""


class Tried(Struct, array_like=True, frozen=True, kw_only=True):
    function: str
    """The function that the tests call; empty if they call several, a class, or a program's standard input."""
    usable: tuple[bool, ...]
    """True for each case of the form `assert f(literals) == value`, in the grammar of `tasks.assertions`, whose input
    differs from those of the shown tests. Inputs are equal if Python's `==` says so, as `3`, `+3` and `3.0` are."""
    inputs: tuple[int, ...]
    """The input of each usable case as a number, the same for equal inputs."""
    programs: tuple[TriedProgram, ...]


TRY_CASES = Job("try_cases", Trial, Tried)


def ask_to_try(
    workers: Workers, task: Task, cases: Sequence[str], programs: Sequence[str], num_inputs: int = 0
) -> Tried | Death:
    """Returns the results of the solutions on the cases, and on at most `num_inputs` inputs like the shown ones, or the
    death of the worker that read these texts. Raises WorkerError."""
    seconds = SECONDS * max(len(programs), 1)
    trial = Trial(
        origin=task.origin,
        tests=task.tests,
        shown=prompt.shown_of(task.question, task.tests),
        cases=tuple(cases),
        programs=tuple(programs),
        seconds=seconds,
        num_inputs=num_inputs,
    )
    return workers.ask(TRY_CASES, trial, seconds + SECONDS)
