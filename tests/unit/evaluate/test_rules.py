import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.evaluate.rules import check

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
    ],
    ids=["null", "parens", "minuses", "brackets", "surrogate", "digits", "backslash", "half", "nested"],
)
def test_hostile_code_is_scored_without_raising(code):
    assert check(code, TESTS)["parses"] in (0, 1)


def test_code_is_never_executed(tmp_path):
    victim = tmp_path / "victim"
    check(f"open({str(victim)!r}, 'w')\ndef add(a, b): return 1", f"open({str(victim)!r}, 'w')")
    assert not victim.exists()


@given(st.text(), st.text())
def test_any_code_and_any_tests_give_scores_of_0_or_1(code, tests):
    assert set(check(code, tests).values()) <= {0.0, 1.0}
