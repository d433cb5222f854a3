"""Tries solutions on written cases by dry runs, in a worker process."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from time import process_time
from typing import Any

from codezero.evaluate.copies import program_of
from codezero.evaluate.dryrun import Budget, dry_run, share_of, until
from codezero.evaluate.fresh.draw import asked_like, values_of
from codezero.evaluate.rules.solution import requirements_of
from codezero.tasks.assertions import Calls, read_tests
from codezero.tasks.testcases import UNPARSEABLE, TestSuite, parse_source, parse_tests
from codezero.types import CaseOutcome
from codezero.verifier.jobs import Trial, Tried, TriedProgram

INPUTS_SHARE = 0.2
"""The share of the time that finding inputs like the shown ones may take."""


def try_cases(asked: Trial) -> Tried:
    """Returns the results of all solutions. What cannot be told within the time counts as unknown."""
    ends = process_time() + asked.seconds
    suite, shown = parse_tests(asked.tests), parse_tests(asked.shown)
    requirements = requirements_of(asked.origin, suite)
    names = requirements.functions.keys()
    known = [given for one in shown.statements for given in _inputs(one, names)]
    given = [_input(case, names) for case in asked.cases]
    usable = tuple(one is not None and one not in known and _is_like(one, known) for one in given)
    kept = [case for case, is_one in zip(asked.cases, usable, strict=True) if is_one]
    kept_inputs = [one for one, is_one in zip(given, usable, strict=True) if is_one]
    written = TestSuite(setup=suite.setup, statements=tuple(kept))
    seed, count, seconds = asked.tests.encode(), asked.num_inputs, INPUTS_SHARE * asked.seconds
    inputs = asked_like(shown, names, seed=seed, count=count, seconds=seconds) if count else []
    found = []
    for number, code in enumerate(asked.programs):
        share = share_of(ends - process_time(), len(asked.programs) - number)
        its_end = process_time() + min(share, Budget().total_seconds)
        outcomes = [one.outcome for one in dry_run(code, shown, until(its_end))]
        values = values_of(code, suite, inputs, until(its_end)) if inputs else {}
        program = program_of(code, requirements.wanted)
        results = dry_run(code, written, until(its_end), alone=False)
        found.append(
            TriedProgram(
                passes_shown=parse_source(code) is not None and set(outcomes) <= {CaseOutcome.PASS},
                cases=tuple(one.outcome for one in results),
                reasons=tuple(one.reason for one in results),
                digest=program.digest if program else b"",
                values=tuple(repr(values[one]) if one in values else "" for one in inputs),
            )
        )
    (function,) = names if len(names) == 1 else ("",)
    return Tried(
        function="" if function == "Solution" else function,
        usable=usable,
        inputs=tuple(map(kept_inputs.index, kept_inputs)),  # that of the first equal one
        programs=tuple(found),
    )


def _input(case: str, names: AbstractSet[str]) -> tuple[Any, ...] | None:
    """Returns the arguments of a case of the form that its prompt asks for, `assert f(literals) == value` with one of
    the functions; None for any other. Other forms of the grammar are refused since `str(f(7)).startswith('')` holds
    whatever f returns."""
    calls, tree = read_tests(case), parse_source(case)
    if not (isinstance(calls, Calls) and calls.num_tests == 1 and calls.names <= names) or tree is None:
        return None
    (statement,) = tree.body
    test = statement.test if isinstance(statement, ast.Assert) else None
    if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Call) and not test.left.keywords):
        return None
    is_asked = isinstance(test.left.func, ast.Name) and test.left.func.id in names
    is_written = not any(isinstance(node, ast.Call) for node in ast.walk(test.comparators[0]))
    if not (is_asked and is_written and isinstance(test.ops[0], ast.Eq | ast.Is)):
        return None
    return _literals(test.left.args)


def _is_like(given: tuple[Any, ...], known: Sequence[tuple[Any, ...]]) -> bool:
    """Returns whether each argument is of a type that a shown one has in its place; integers and floats are of one.
    Another type, such as a tuple for a list, mostly has a result that is shown already, and refuses right programs."""
    kinds = [[float if type(value) is int else type(value) for value in one] for one in (given, *known)]
    shown = [kind for kind in kinds[1:] if len(kind) == len(given)]
    return not shown or all(kind in {one[place] for one in shown} for place, kind in enumerate(kinds[0]))


def _inputs(source: str, names: AbstractSet[str]) -> list[tuple[Any, ...]]:
    """Returns the arguments, with those by name, of each call of the functions with literals in a test of any form."""
    tree = parse_source(source)
    calls = [
        _literals([*node.args, *(one.value for one in node.keywords)])
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]
    return [one for one in calls if one is not None]


def _literals(nodes: Sequence[ast.expr]) -> tuple[Any, ...] | None:
    """Returns the values of literals; None if one is not a literal."""
    try:
        return tuple(map(ast.literal_eval, nodes))
    except (*UNPARSEABLE, TypeError):
        return None
