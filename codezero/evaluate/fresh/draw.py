"""Draws fresh tests of a task. It runs in worker processes, since tests and reference may be untrusted."""

from __future__ import annotations

import ast
import random
import re
import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

from codezero.evaluate.dryrun import Budget, dry_run, printed, until
from codezero.evaluate.fresh.forms import NEAR, Form, form_of
from codezero.evaluate.fresh.mutate import mutants
from codezero.tasks.testcases import UNPARSEABLE, TestSuite
from codezero.types import CaseOutcome

MAX_TESTS = 50
"""The most visible tests that are read."""
LIKELY = 4
"""Inputs tried for each fresh test: the reference fails on some, and of the others those with different results are
preferred."""
REFERENCE_SHARE = 10
"""An attempt's step budget divided by the reference's; slower inputs are dropped: right attempts may be slower."""
MAX_CHARS = 1_000
"""The most characters of a result's repr."""
MIN_ASKED = 4
"""The fewest similar inputs that tell whether a program contains the answers to the visible ones."""
_MARK_BYTES = 16
"""The random bytes of the mark before each value in what a program prints, which it cannot print itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshTests:
    """Fresh tests, each with the expression that it checks."""

    suite: TestSuite
    asked: tuple[str, ...]
    varied: bool
    """True if the reference gives more than one result."""
    one_result: bool = False
    """True if the reference gives one result for all inputs, visible ones too: then a constant passes every test."""


NONE = FreshTests(suite=TestSuite(), asked=(), varied=False)


def draw(
    suite: TestSuite, functions: Collection[str], reference: str, *, seed: bytes, count: int, seconds: float
) -> FreshTests:
    """Draws at most `count` tests like those of the suite, with the results of the reference, in `seconds` of processor
    time. Equal seeds draw equal tests. There are none if the reference fails a visible test, or no test has literal
    inputs. `functions` are the names that the tests call."""
    ends = process_time() + seconds
    alike = form_and_inputs(suite, functions)
    if alike is None or {case.outcome for case in dry_run(reference, suite, budget_for(ends))} != {CaseOutcome.PASS}:
        return NONE
    form, inputs = alike
    rng = random.Random(seed)
    drawn = mutants(inputs, LIKELY * count, rng, seconds=ends - process_time())
    asked = [form.asked(one) for one in drawn]
    results = values_of(reference, suite, asked, budget_for(ends, len(asked)))
    if not results:  # one of them ends the run
        results = {}
        for one in asked:
            results |= values_of(reference, suite, [one], budget_for(ends))
    tests = _proven(suite, reference, form, _varied(results, count), ends)
    if tests.varied or not tests.asked:
        return tests
    shown = values_of(reference, suite, [form.asked(one) for one in inputs], budget_for(ends, len(inputs)))
    is_one = len(shown) == len(inputs) and all(one == results[tests.asked[0]] for one in shown.values())
    return replace(tests, one_result=is_one)


def _proven(suite: TestSuite, reference: str, form: Form, results: Mapping[str, Any], ends: float) -> FreshTests:
    """Returns the tests of expressions and their results that the reference passes, in order and each on its own."""
    setup = f"{suite.setup}\n{NEAR}"
    statements = [(asked, form.test(asked, result)) for asked, result in results.items()]
    cases = dry_run(reference, TestSuite(setup=setup, statements=tuple(one for _, one in statements)), budget_for(ends))
    passed = [one for one, case in zip(statements, cases, strict=True) if case.outcome is CaseOutcome.PASS]
    return FreshTests(
        suite=TestSuite(setup=setup, statements=tuple(statement for _, statement in passed)),
        asked=tuple(asked for asked, _ in passed),
        varied=any(results[asked] != results[passed[0][0]] for asked, _ in passed),
    )


def values_of(program: str, suite: TestSuite, asked: Sequence[str], budget: Budget) -> dict[str, Any]:
    """Returns the values of the expressions when the program runs, of those that are short literals. It is empty if one
    expression ends the run. Nothing else that the program prints is taken for a value: the lines with values have a
    mark of this call alone, and no function that the program may define prints them."""
    if budget.total_seconds <= 0:
        return {}
    mark = f"fresh_{secrets.token_hex(_MARK_BYTES)}"
    tries = "".join(
        f"\ntry:\n    fresh_value = {one}\n    fresh_sys.stdout.write(f'\\n{mark}:{number} {{fresh_value!r}}\\n')"
        "\nexcept Exception:\n    pass"
        for number, one in enumerate(asked)
    )
    output = printed(f"{program}\n{suite.setup}\nimport sys as fresh_sys{tries}", budget) or ""
    found = re.findall(rf"^{mark}:(\d+) (.{{1,{MAX_CHARS}}})$", output, re.MULTILINE)
    return {asked[int(number)]: value for number, text in found for value in _literal(text)}


def _literal(text: str) -> list[Any]:
    """Returns the value with this repr in a list, which is empty if the value has no literal form."""
    try:
        value = ast.literal_eval(text)
    except (*UNPARSEABLE, TypeError):
        return []
    return [value] if text == repr(value) or isinstance(value, set | dict) else []


def asked_like(suite: TestSuite, functions: Collection[str], *, seed: bytes, count: int, seconds: float) -> list[str]:
    """Returns expressions that call the functions with at most `count` inputs like those of the tests, found in
    `seconds` of processor time; none if no test has literal inputs."""
    alike = form_and_inputs(suite, functions)
    if alike is None:
        return []
    form, inputs = alike
    return [form.asked(one) for one in mutants(inputs, count, random.Random(seed), seconds)]


def budget_for(ends: float, runs: int = 1) -> Budget:
    """Returns the budget of a number of runs of the reference that end at the processor time `ends`."""
    return until(ends, Budget().steps * runs // REFERENCE_SHARE)


def form_and_inputs(suite: TestSuite, functions: Collection[str]) -> tuple[Form, list[tuple[Any, ...]]] | None:
    """Returns the form that most tests have, and their distinct inputs; None if no test has a form."""
    inputs: dict[Form, dict[str, tuple[Any, ...]]] = {}
    for form, values in filter(None, (form_of(one, functions) for one in suite.statements[:MAX_TESTS])):
        inputs.setdefault(form, {})[repr(values)] = values
    most = max(inputs.items(), key=lambda one: len(one[1]), default=None)
    return (most[0], list(most[1].values())) if most else None


def _varied(results: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Returns `count` of the results, as many different ones as possible."""
    seen = Counter[str]()
    ranked: list[tuple[int, int, str]] = []
    for asked, result in results.items():
        ranked.append((seen[repr(result)], len(ranked), asked))
        seen[repr(result)] += 1
    return {asked: results[asked] for *_, asked in sorted(ranked)[:count]}
