import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.evaluate.rules import check
from codezero.testcases import MAX_SOURCE_CHARS

TESTS = "assert add(1, 2) == 3\nassert add(0, b=5) == 5"
GOOD = "def add(a, b):\n    return a + b"


def test_good_solution_passes_every_rule():
    assert check(GOOD, TESTS) == {"parses": 1, "defines": 1, "arity": 1, "returns": 1, "names": 1}


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        ("def add(a, b)\n    return a", {"parses"}),
        ("def plus(a, b):\n    return a + b", {"defines"}),
        ("def add(a):\n    return a", {"arity"}),
        ("def add(a, c):\n    return a + c", {"arity"}),
        ("def add(a, b, c):\n    return a", {"arity"}),
        ("def add(a, b, *, c):\n    return a", {"arity"}),
        ("def add(a, b):\n    print(a + b)", {"returns"}),
        ("def add(a, b):\n    def inner():\n        return 1\n    inner()", {"returns"}),
        ("def add(a, b):\n    return a + c", {"names"}),
        ("def add(a, b):\n    return math.fsum([a, b])", {"names"}),
        ("def add(*args, **kwargs):\n    return 1", set()),
        ("def add(a, b=0, *, c=1):\n    return a", set()),
        ("class add:\n    def __new__(cls, a, b):\n        return a + b", set()),
        ("import math\ndef add(a, b):\n    return math.fsum([a, b])", set()),
    ],
)
def test_each_rule_fails_on_its_own(code, failed):
    assert {name for name, score in check(code, TESTS).items() if score == 0} == failed


def test_names_the_tests_define_or_import_are_not_asked_for():
    tests = "import math\ndef near(a, b):\n    return abs(a - b) < 1e-9\nassert near(root(4), math.sqrt(4))"
    assert check("def root(x):\n    return x ** 0.5", tests)["defines"] == 1


def test_stdin_program_is_judged_by_syntax_and_names_only():
    assert check("n = int(input())\nprint(n * 2)", "input: 2\noutput: 4") == {"parses": 1, "names": 1}


@pytest.mark.parametrize(
    "code",
    [
        "\x00",
        "(" * 5_000,
        "-" * 10_000 + "1",
        "[" * 300 + "]" * 300,
        "\ud800",
        "x = " + "9" * 10_000,
        "\\",
        "def f(:",
        "if 1:\n" * 200,
        "(" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "a" + ".b" * 500_000,  # crashes CPython 3.10 if it is parsed
        "a" + ".b" * 9_000,
        "lambda: " * 2_000 + "1",
        "f'" + "{1}" * 6_000 + "'",
    ],
    ids=[
        *("null", "parens", "minuses", "brackets", "surrogate", "digits", "backslash", "half", "nested"),
        *("100,000 parens", "100,000 lists", "long chain", "chain", "lambdas", "fields"),
    ],
)
def test_hostile_code_is_scored_without_raising_also_as_tests(code):
    assert check(code, TESTS)["parses"] in (0, 1)
    assert check(GOOD, code)["parses"] == 1


@pytest.mark.parametrize(
    "annotation",
    ["'" + "-" * 19_000 + "1'", "'\\ud800'", "'\\x00'", "'" + "(" * 1_000 + "'", "'a" + ".b" * 9_000 + "'"],
    ids=["minuses", "surrogate", "null", "parens", "chain"],
)
def test_hostile_code_in_an_annotation_is_scored_without_raising(annotation):
    assert check(f"def add(a, b: {annotation}):\n    return a + b", TESTS)["parses"] == 1


def test_future_import_inside_a_function_fails_a_rule_and_not_the_round():
    code = "def add(a, b):\n    from __future__ import annotations\n    return a + b"
    assert check(code, TESTS) == {"parses": 1, "defines": 1, "arity": 1, "returns": 1, "names": 0}


@pytest.mark.timeout(20)
def test_a_megabyte_of_fields_does_not_hold_up_a_round():
    fields = "f'" + "{1}" * 300_000 + "'"  # parsing it takes CPython 3.11 about 50 s
    assert check(fields, TESTS) == {"parses": 0}
    assert check(GOOD, fields) == {"parses": 1, "names": 1}


def test_code_and_tests_are_looked_into_up_to_a_length():
    padding = "#" * (MAX_SOURCE_CHARS - len(TESTS) - 1)
    assert "defines" in check(GOOD, f"{TESTS}\n{padding}")
    assert "defines" not in check(GOOD, f"{TESTS}\n{padding}#")


def test_code_is_never_executed(tmp_path):
    victim = tmp_path / "victim"
    check(f"open({str(victim)!r}, 'w')\ndef add(a, b): return 1", f"open({str(victim)!r}, 'w')")
    assert not victim.exists()


@given(st.text(), st.text())
def test_any_code_and_any_tests_give_scores_of_0_or_1(code, tests):
    assert set(check(code, tests).values()) <= {0.0, 1.0}
