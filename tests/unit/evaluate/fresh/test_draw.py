"""Tests that are drawn have results of the reference, and come from nothing that it does not vouch for."""

import ast

import pytest

from codezero.evaluate.dryrun import dry_run
from codezero.evaluate.fresh.draw import draw
from codezero.evaluate.fresh.forms import NEAR
from codezero.tasks.testcases import TestSuite, parse_tests
from codezero.types import CaseOutcome

TESTS = "assert f([1, 2]) == 3\nassert f([4, 5, 6]) == 15\nassert f([7]) == 7"
SUM = "def f(xs):\n    return sum(xs)"


def drawn(reference=SUM, tests=TESTS, seed=b"", count=5):
    return draw(parse_tests(tests), {"f"}, reference, seed=seed, count=count, seconds=5.0)


def test_the_results_are_those_of_the_reference():
    found = drawn()
    assert len(found.asked) == 5
    for statement, asked in zip(found.suite.statements, found.asked, strict=True):
        xs = ast.literal_eval(asked.removeprefix("f(").removesuffix(")"))
        assert statement == f"assert {asked} == {sum(xs)}"
        assert statement not in TESTS


def test_equal_seeds_draw_equal_tests():
    assert drawn(seed=b"a") == drawn(seed=b"a") != drawn(seed=b"b")


def test_a_test_that_is_repeated_fixes_nothing():
    assert len(drawn(tests="assert f([9, 12, 3]) == 24\n" * 3).asked) == 5


@pytest.mark.parametrize(
    "reference",
    [
        "def f(xs):\n    return 3",
        "def f(xs):\n    return unknown(xs)",
        "import numpy\ndef f(xs):\n    return int(numpy.sum(xs))",
        "def f(xs:",
        "",
        "def f(xs):\n    while True:\n        pass",
    ],
)
def test_a_reference_that_fails_the_visible_tests_gives_none(reference):
    assert len(drawn(reference).asked) == 0


@pytest.mark.parametrize(
    "elsewhere",
    [
        "raise ValueError(xs)",
        "return lambda: 0",
        "return float('nan')",
        "return float('inf')",
        "return [0] * 10_000",
        "import numpy",
        "raise SystemExit",
        "while True: pass",
        "print('fresh:0 7'); return lambda: 0",
    ],
)
def test_inputs_on_which_the_reference_fails_runs_long_or_gives_no_literal_are_thrown_away(elsewhere):
    known = "    if xs in ([1, 2], [4, 5, 6], [7]):\n        return sum(xs)\n"
    found = drawn(f"def f(xs):\n{known}    {elsewhere}")
    assert len(found.asked) == 0


def test_a_reference_that_no_budget_stops_at_once_does_not_take_its_time_for_each_input(monkeypatch):
    runs, clock = [], iter(range(1000))
    for module in ("fresh.draw", "dryrun.budget"):
        monkeypatch.setattr(f"codezero.evaluate.{module}.process_time", lambda: next(clock) if runs else 0.0)
    monkeypatch.setattr("codezero.evaluate.fresh.draw.printed", lambda program, budget: runs.append(budget))
    drawn()
    assert len(runs) == 6


def test_those_on_which_it_does_well_stay():
    found = drawn("def f(xs):\n    if len(xs) > 2 and xs[0] != 4:\n        while True: pass\n    return sum(xs)")
    assert 0 < len(found.asked) <= 5


@pytest.mark.parametrize(
    ("tests", "reference", "test"),
    [
        ("assert f(2) is True\nassert f(4) is True", "def f(n): return n > 0", "assert (f("),
        ("assert not f(2)\nassert not f(4)", "def f(n): return n < 0", "assert not (f("),
        (
            "import math\nassert math.isclose(f(2), 4.1, rel_tol=0.1)",
            "def f(n): return n * 2.0",
            "assert math.isclose(f(",
        ),
        ("assert abs(f(2) - 4.1) < 0.2", "def f(n): return n * 2.0", "assert abs(f("),
        ("assert f(2) == 1.0\nassert f(8) == 4.0", "def f(n): return n / 2", "assert fresh_near(f("),
        ("assert 4 == f(2)\nassert 18 == f(9)", "def f(n): return n * 2", "assert f("),
        ("assert set(f(3)) == {0, 1, 2}", "def f(n): return list(range(n))", "assert set(f("),
    ],
)
def test_values_are_compared_as_the_visible_tests_do(tests, reference, test):
    found = drawn(reference, tests)
    assert found.suite.statements
    assert all(statement.startswith(test) for statement in found.suite.statements), found.suite.statements


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(g(1)) == 1",
        "x = 3\nassert f(x) == 1",
        "assert f(a=1) == 1",
        "assert f(*[1]) == 1",
        "assert f() == 1",
        "assert f(1) == f(1)",
        "f(1)",
        "Input:\n1\nOutput:\n1\n",
        "assert f(" + "[" * 60 + "]" * 60 + ") == 1",
        "assert f(" + "1, " * 100 + ") == 1",
        "assert f('" + "a" * 3000 + "') == 1",
        "not python",
        "",
    ],
)
def test_other_tests_than_of_calls_with_literals_give_none(tests):
    assert len(drawn("def f(*args, **named): return 1\ndef g(n): return n", tests).asked) == 0


def test_what_visible_inputs_share_by_chance_leaves_no_task_with_a_few_tests():
    found = drawn("def f(n):\n    return n | 0xAAAA & (1 << n.bit_length()) - 1", SETS_EVEN_BITS, count=16)
    assert len(found.asked) == 16
    assert any(ast.literal_eval(asked.removeprefix("f")) % 5 for asked in found.asked)


SETS_EVEN_BITS = "assert f(10) == 10\nassert f(20) == 30\nassert f(30) == 30"


@pytest.mark.parametrize("value", ["float('inf')", "1e308 * 10"])
def test_an_infinite_value_is_near_to_no_other(value):
    (statement,) = parse_tests(f"assert fresh_near({value}, 2.5)").statements
    (found,) = dry_run("", TestSuite(setup=NEAR, statements=(statement,)))
    assert found.outcome is CaseOutcome.FAIL


def test_what_holds_by_more_than_chance_stays_where_few_inputs_have_it():
    tests = "assert f(8) == 3\nassert f(32) == 5\nassert f(128) == 7"
    found = drawn("def f(n):\n    return n.bit_length() - 1", tests, count=16)
    inputs = [ast.literal_eval(asked.removeprefix("f")) for asked in found.asked]
    assert inputs
    assert not [n for n in inputs if n & (n - 1)]
