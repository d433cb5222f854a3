"""The dry run: checks a solution against the tests of its task without executing it.

It interprets a pure subset of Python, translated from a syntax tree to closures. It never calls exec or eval, imports
nothing for a program, and gives it no reference into the host (the CPython that runs the interpreter). Nor does it call
compile, whose bytecode repeats the body of each `finally`: nested ones take exponential time and memory. The symbol
tables of CPython, which find most of what it refuses to compile, stay linear. A feature that is not interpreted ends
the case as unknown.
"""

from __future__ import annotations

import sys
import threading

from codezero.evaluate.dryrun import (
    calls,
    comprehensions,
    contexts,
    definitions,
    derived,
    displays,
    expressions,
    flow,
    library_interpreted,
    patterns,
    targets,
)
from codezero.evaluate.dryrun.budget import OUT_OF_TIME, Budget, budget_of
from codezero.evaluate.dryrun.program import Program, short, unknown
from codezero.evaluate.dryrun.refused import refused
from codezero.tasks.testcases import MAX_SOURCE_CHARS, StdinExample, TestSuite, parse_source
from codezero.types import CaseOutcome, CaseResult

_TRANSLATORS = (calls, comprehensions, contexts, definitions, derived, displays, expressions, flow, patterns, targets)
"""Modules that register their translations of syntax nodes when they are imported."""
library_interpreted.load()

_MODULE = "solution"
"""The `__name__` of solutions whose functions are tested, as in the sandbox."""
_STACK_BYTES = 256 << 20
"""Stack size of the interpreter's thread; only the part that is used takes memory. CPython hashes nested tuples by
unlimited recursion: measure.MAX_NODES levels take about 50 MiB."""
_HOST_RECURSION = 320_000 if sys.version_info >= (3, 11) else 160_000
"""The host's recursion limit: a call of a program takes 10 to 20 frames. Before 3.11 each is on the C stack."""


def dry_run(code: str, suite: TestSuite, budget: Budget | None = None, *, alone: bool = True) -> tuple[CaseResult, ...]:
    """Returns the result of each case of `suite` with the solution `code`, in order. `budget` is `budget_of(suite)` by
    default.

    PASS and FAIL agree with executing the case, except that a case which passes only after earlier ones is a FAIL;
    without `alone` it is a PASS, and each case has all the steps, whatever the ones before it took. UNKNOWN means that
    it uses a feature that is not interpreted, or exceeds the budget.
    Never raises because of `code` or the tests. Call it once at a time in a process.
    """
    if suite.num_cases == 0:
        return ()
    budget = budget or budget_of(suite)
    if budget.total_seconds <= 0:
        return _all(suite, CaseOutcome.UNKNOWN, OUT_OF_TIME)
    tree = parse_source(code)
    if tree is None:
        failed = len(code) <= MAX_SOURCE_CHARS
        reason = "SyntaxError: does not parse" if failed else "too long"
        return _all(suite, CaseOutcome.FAIL if failed else CaseOutcome.UNKNOWN, reason)
    wrong = refused(code, tree)
    if wrong:
        return _all(suite, CaseOutcome.FAIL, f"SyntaxError: {wrong}")
    program = Program(tree, suite, budget, alone=alone, name="__main__" if suite.examples else _MODULE)
    run_in_thread(program)
    missing = suite.num_cases - len(program.results)
    return (*program.results, *[unknown(OUT_OF_TIME)] * missing)


def printed(code: str, budget: Budget = Budget()) -> str | None:  # noqa: B008
    """Returns what a module prints for an empty input when it is imported; None if it is not interpreted or ends in an
    error.

    Like `dry_run`, never raises because of `code`.
    """
    tree = parse_source(code)
    if tree is None or refused(code, tree):
        return None
    empty = TestSuite(examples=(StdinExample(given="", expected=""),))
    program = Program(tree, empty, budget, name=_MODULE)
    run_in_thread(program)
    return program.output


def run_in_thread(program: Program) -> None:
    """Runs the program in a thread with a large stack, and raises the process's recursion limit meanwhile."""
    limit = sys.getrecursionlimit()
    stack = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=program.run, name="dry-run", daemon=True)
        sys.setrecursionlimit(max(limit, _HOST_RECURSION))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(limit)


def _all(suite: TestSuite, outcome: CaseOutcome, reason: str) -> tuple[CaseResult, ...]:
    return (CaseResult(outcome=outcome, reason=short(reason)),) * suite.num_cases
