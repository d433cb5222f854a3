import ast
import json
import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.tasks.problems import load_problems
from codezero.tasks.testcases import (
    MAX_SOURCE_CHARS,
    StdinExample,
    TestSuite,
    comparison,
    parse_source,
    parse_tests,
)
from tests.unit.tasks.builders import real_mbpp


def test_asserts_are_cases_and_what_they_need_is_setup():
    suite = parse_tests("import math\nlimit = 3\nassert f(1) == 2\nassert f(limit) == 4")
    assert suite.setup == "import math\nlimit = 3"
    assert suite.statements == ("assert f(1) == 2", "assert f(limit) == 4")


def test_what_stands_between_cases_is_done_before_the_next_one():
    tests = "x = 1\nassert f(x) == 2\nx = 2\nimport math\nassert f(x) == 3\nassert f(x) == math.e\nx = 5"
    suite = parse_tests(tests)
    assert suite.setup == "x = 1\nimport math"
    cases = ["assert f(x) == 2", "x = 2\nassert f(x) == 3", "assert f(x) == math.e\nx = 5"]
    assert list(suite.statements) == cases


def test_decorators_stay_with_what_they_decorate():
    setup = "from dataclasses import dataclass\n@dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int"
    suite = parse_tests(f"{setup}\nassert f(P(1)) == 2")
    assert ast.dump(ast.parse(suite.setup)) == ast.dump(ast.parse(setup))


def test_a_call_is_a_case():
    suite = parse_tests("def told(f):\n    x = f(1)\n    assert x\n    assert x == 2\n\ntold(add)")
    assert suite.setup == "def told(f):\n    x = f(1)\n    assert x\n    assert x == 2"
    assert suite.statements == ("told(add)",)


HUMAN_EVAL = (
    "METADATA = {}\ndef check(candidate):\n    assert True, 'runs'\n    # Simple\n    assert candidate(1) == 2\n"
)


@pytest.mark.parametrize("called", ["add", "Solution().add"])
def test_the_asserts_of_a_check_are_cases(called):
    loop = "    for i in range(9):\n        assert candidate(i) == i + 1\n"
    suite = parse_tests(f"{HUMAN_EVAL}{loop}check({called})")
    assert list(suite.statements) == [
        "assert True, 'runs'",
        f"assert {called}(1) == 2",
        f"for i in range(9):\n    assert {called}(i) == i + 1",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "assert candidate([1, 2]) == 3\nassert candidate([4]) == 4",
        "for given, wanted in [([1, 2], 3), ([4], 4)]:\n    assert candidate(given) == wanted",
        "cases = [([1, 2], 3), ([4], 4)]\nfor x, wanted in cases:\n    got = candidate(x)\n    assert got == wanted",
        "x, wanted = [1, 2], 3\nassert candidate(x) == wanted\nx = [4]\nwanted = 4\nassert candidate(x) == wanted",
    ],
    ids=["asserts", "a loop", "values in a loop", "variables"],
)
def test_a_check_of_names_and_loops_is_that_of_its_asserts(body):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    found = parse_tests(f"def check(candidate):\n{lines}\ncheck(add)").statements
    assert list(found) == ["assert add([1, 2]) == 3", "assert add([4]) == 4"]


def test_a_check_of_loops_in_loops_ends_early():
    loops = "".join(f"{'    ' * depth}for x{depth} in {list(range(90))}:\n" for depth in range(1, 12))
    suite = parse_tests(f"def check(candidate):\n{loops}{'    ' * 12}'nothing'\n\ncheck(add)")
    assert list(suite.statements) == ["check(add)"]


@pytest.mark.parametrize(
    "text",
    [
        HUMAN_EVAL + "    x = [3]\n    assert candidate(x) == 4\n    assert x == [3]\ncheck(add)",
        HUMAN_EVAL + "    x = [3]\n    for i in (1, 2):\n        assert candidate(x) == i\ncheck(add)",
        HUMAN_EVAL + "    for x in ([3], [4]):\n        assert candidate(x) == 4\n        assert x\ncheck(add)",
        HUMAN_EVAL + "    x = candidate(3)\n    x = 4\n    assert x == 4\ncheck(add)",
        HUMAN_EVAL + "    x = [3]\n    x.append(4)\n    assert candidate(x) == 4\ncheck(add)",
        HUMAN_EVAL + "    x += 3\n    assert candidate(x) == 4\ncheck(add)",
        HUMAN_EVAL + "    for x, y in [(1, 2, 3)]:\n        assert candidate(x) == y\ncheck(add)",
        HUMAN_EVAL
        + "    for x in [1, 2]:\n        assert candidate(x) == 4\n    else:\n        assert False\ncheck(add)",
        HUMAN_EVAL + "    assert [candidate for candidate in (1,)]\ncheck(add)",
        HUMAN_EVAL + "check(add)\ncheck(plus)",
        HUMAN_EVAL + "check(add, 1)",
        HUMAN_EVAL + "check(add)\nassert add(2) == 3",
    ],
    ids=[
        *("looked at again", "used in a loop", "used twice in a loop", "a call for nothing", "changed", "added to"),
        *("another number of names", "an else", "another candidate", "two calls", "another form", "an assert besides"),
    ],
)
def test_a_check_that_is_more_than_asserts_stays_whole(text):
    assert "check(add" in parse_tests(text).statements[0]


def test_a_table_holds_examples():
    suite = parse_tests("Input:\n1 2\n\nOutput:\n3\n\nInput:\n4 5\nOutput:\n9\n")
    assert suite.examples == (
        StdinExample(given="1 2\n\n", expected="3\n\n"),
        StdinExample(given="4 5\n", expected="9\n"),
    )
    assert suite.num_cases == 2


@pytest.mark.parametrize("text", ["", "no python, no table", "assert f(", "\0", "(" * 10_000, "1\n" * MAX_SOURCE_CHARS])
def test_what_cannot_be_read_holds_no_case(text):
    assert parse_tests(text) == TestSuite()


def test_every_built_in_problem_has_its_asserts_as_cases():
    for problem in load_problems():
        assert parse_tests(problem.task.tests).num_cases == problem.task.tests.count("assert "), problem.task.task_id


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
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # eth-account, which other tests import in this process, has raised it
    try:
        assert comparison(test) == sides
    finally:
        sys.setrecursionlimit(before)


def parsed_plainly(text: str) -> TestSuite:
    """What parse_tests should give, in a plain way that takes quadratic time."""
    text = text.replace("\r\n", "\n")
    table = re.compile(r"^Input:\n(.*?)^Output:\n(.*?)(?=^Input:\n|\Z)", re.DOTALL | re.MULTILINE)
    examples = tuple(StdinExample(given=given, expected=expected) for given, expected in table.findall(text))
    if examples and text.lstrip().startswith("Input:"):
        return TestSuite(examples=examples)
    tree = parse_source(text)
    setup, statements, between = [], [], []
    for node in tree.body if tree else []:
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            statements.append("\n".join([*between, source]))
            between = []
        elif not isinstance(node, ast.Expr):
            (setup if isinstance(node, ast.FunctionDef) or not statements else between).append(source)
    if between:
        statements[-1] = "\n".join([statements[-1], *between])
    return TestSuite(setup="\n".join(setup), statements=tuple(statements))


PIECES = st.lists(
    st.sampled_from(
        ["assert f(1) == 2", "f()", "x = 'ä€𐍈'", "# é", "def g():\n    return 1", "\n", "\r", "\r\n", "\x0c", "\x1c",
         ";", "\u2028", "'''a\r\n\n'''", " ", "\t", "\\\n", "Input:\n", "Output:\n", "Input:", "1 2", "if 1:\n  f()",
         "\ufeff"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=500)
@given(PIECES)
def test_texts_are_taken_apart_as_by_the_plain_way(text):
    assert parse_tests(text) == parsed_plainly(text)


def test_the_tests_of_mbpp_are_taken_apart_as_by_the_plain_way():
    for line in Path(real_mbpp()).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = "\n".join([row["test_setup_code"], *row["test_list"], *row["challenge_test_list"]])
        assert parse_tests(text) == parsed_plainly(text)


@pytest.mark.parametrize(
    ("text", "cases"),
    [("f();" * 4_999, 4_999), ("Input:\n" * 9_362, 0), ("Input:\nOutput:\n" * 4_600, 4_600), ("Output:\n" * 9_362, 0)],
    ids=["calls in one line", "inputs", "examples", "outputs"],
)
def test_long_tests_are_read_in_no_time(text, cases):
    started = time.process_time()
    assert parse_tests(text).num_cases == cases
    assert time.process_time() - started < 3  # some 0.1 s; it took 43
