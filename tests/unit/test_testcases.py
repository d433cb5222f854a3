import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.tasks.problems import load_problems
from codezero.testcases import MAX_SOURCE_CHARS, Example, Statement, TestSuite, comparison, parse_source, parse_tests


def test_asserts_are_cases_and_what_they_need_is_setup():
    suite = parse_tests("import math\nlimit = 3\nassert f(1) == 2\nassert f(limit) == 4")
    assert suite.setup == "import math\nlimit = 3"
    assert suite.statements == (Statement(source="assert f(1) == 2"), Statement(source="assert f(limit) == 4"))


def test_a_call_is_a_case_as_human_eval_writes_it():
    suite = parse_tests("def check(f):\n    assert f(1) == 2\n\ncheck(add)")
    assert suite.setup == "def check(f):\n    assert f(1) == 2"
    assert suite.statements == (Statement(source="check(add)"),)


def test_a_table_holds_examples():
    suite = parse_tests("Input:\n1 2\n\nOutput:\n3\n\nInput:\n4 5\nOutput:\n9\n")
    assert suite.examples == (Example(given="1 2\n\n", expected="3\n\n"), Example(given="4 5\n", expected="9\n"))
    assert suite.num_cases == 2


@pytest.mark.parametrize("text", ["", "no python, no table", "assert f(", "\0", "(" * 10_000, "1\n" * MAX_SOURCE_CHARS])
def test_what_cannot_be_read_holds_no_case(text):
    assert parse_tests(text) == TestSuite()


def test_every_built_in_problem_has_its_asserts_as_cases():
    for problem in load_problems():
        assert parse_tests(problem.task.tests).num_cases == problem.task.tests.count("assert "), problem.name


@given(st.text())
def test_any_text_is_survived(text):
    parse_tests(text)
    parse_source(text)


@pytest.mark.parametrize(
    ("test", "sides"),
    [
        ("assert f(1, 'a') == [2]", ("f(1, 'a')", "[2]")),
        ('assert f(1) == 2, "wrong"', ("f(1)", "2")),
        ("assert math.isclose(f(1), 2)", None),
        ("assert f(1)", None),
        ("assert 1 < f(1) == 2", None),
        ("assert f(1) != 2", None),
        ("check(f)", None),
        ("assert f(1) == 2; g()", None),
        ("assert f(", None),
        ("assert f(" + "1+" * 5_000 + "1) == 2", None),
        ("assert f(0x" + "f" * 9_000 + ") == 2", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_comparison_has_two_sides(test, sides):
    assert comparison(Statement(source=test)) == sides
