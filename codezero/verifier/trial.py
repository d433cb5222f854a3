"""Tries solutions on written cases by dry runs, in a worker process."""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet
from time import process_time

from codezero.evaluate.copies import program_of
from codezero.evaluate.dryrun import Budget, dry_run
from codezero.evaluate.fresh.draw import asked_like, values_of
from codezero.evaluate.rules.solution import asked_of
from codezero.evaluate.shown import wanted_of
from codezero.tasks.assertions import Calls, read_tests
from codezero.tasks.testcases import UNPARSEABLE, Statement, TestSuite, parse_source, parse_tests
from codezero.types import CaseOutcome
from codezero.verifier.jobs import Trial, Tried, TriedProgram

NUM_INPUTS = 16
"""The most inputs like the shown ones."""
INPUTS_SHARE = 0.2
"""The most of the time that finding these may take."""


def try_cases(asked: Trial) -> Tried:
    """Returns the results of all solutions. What cannot be told within the time counts as unknown."""
    ends = process_time() + asked.seconds
    suite, shown = parse_tests(asked.tests), parse_tests(asked.shown)
    wanted = asked_of(asked.origin, suite)
    names = wanted.calls.keys() | wanted.builtin_calls.keys()
    known = {_call(one.source, names) for one in shown.statements}
    calls = {case: _call(case, names) for case in asked.cases}
    fit = tuple(_is_fit(case, names) and calls[case] not in known for case in asked.cases)
    kept = [case for case, is_one in zip(asked.cases, fit, strict=True) if is_one]
    written = TestSuite(setup=suite.setup, statements=tuple(Statement(source=case) for case in kept))
    inputs = asked_like(shown, names, seed=asked.tests.encode(), count=NUM_INPUTS, seconds=INPUTS_SHARE * asked.seconds)
    found = []
    for number, code in enumerate(asked.programs):
        # nearly twice an even share of the time left, so that slow solutions leave some to the next ones
        left_s = 2 * (ends - process_time()) / (len(asked.programs) - number + 1)
        until = process_time() + min(left_s, Budget().total_seconds)
        outcomes = [one.outcome for one in dry_run(code, shown, _budget(until))]
        values = values_of(code, suite, inputs, _budget(until)) if inputs else {}
        program = program_of(code, wanted_of(wanted))
        found.append(
            TriedProgram(
                passes_shown=set(outcomes) <= {CaseOutcome.PASS},
                cases=tuple(one.outcome for one in dry_run(code, written, _budget(until), alone=False)),
                digest=program.digest if program else b"",
                values=tuple(repr(values[one]) if one in values else "" for one in inputs),
            )
        )
    (function,) = names if len(names) == 1 else ("",)
    return Tried(
        function="" if function == "Solution" else function,
        fit=fit,
        calls=tuple(calls[case] for case in kept),
        programs=tuple(found),
    )


def _is_fit(case: str, names: AbstractSet[str]) -> bool:
    """Returns whether a case is one assert that compares the result of one of the functions with a written value."""
    calls = read_tests(case)
    return isinstance(calls, Calls) and calls.num_tests == 1 and calls.names <= names


def _call(source: str, names: AbstractSet[str]) -> str:
    """Returns the first call of one of the functions in a test, as Python prints it; empty if there is none."""
    tree = parse_source(source)
    try:
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                return ast.unparse(node)
    except UNPARSEABLE:
        pass
    return ""


def _budget(until: float) -> Budget:
    return Budget(total_seconds=max(until - process_time(), 0.0))
