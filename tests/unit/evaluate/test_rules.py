import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.evaluate.rules import RULES
from codezero.evaluate.rules.check import check as apply_rules
from codezero.evaluate.rules.solution import RuleScore, requirements_of
from codezero.tasks import mbpp
from codezero.tasks.problems import load_problems
from codezero.tasks.testcases import MAX_SOURCE_CHARS, parse_tests
from codezero.types import Task, TaskOrigin
from tests.unit.tasks.builders import real_mbpp

TESTS = "assert add(1, 2) == 3\nassert add(0, b=5) == 5"
GOOD = "def add(a, b):\n    return a + b"
TABLE = "Input:\n2\nOutput:\n4\n"


def judged(code, tests=TESTS, question="Add two numbers.", text=None, origin=TaskOrigin.MBPP):
    task = Task(origin=origin, question=question, tests=tests)
    return scores_of(code, task, text)


def scores_of(code, task, text=None):
    requirements = requirements_of(task.origin, parse_tests(task.tests))
    return apply_rules(code, text or f"```python\n{code}\n```", task, requirements)


def check(code, tests=TESTS, **kwargs):
    return {name: score.score for name, score in judged(code, tests, **kwargs).items()}


def broken(code, tests=TESTS, **kwargs):
    return {name for name, score in check(code, tests, **kwargs).items() if score == 0}


def test_good_solution_keeps_every_rule_and_no_reason_is_given():
    assert judged(GOOD) == {name: RuleScore(score=1.0, reason="") for name in RULES}


def test_reading_a_solution_leaves_no_note_for_the_next():
    judged("def add(a, b):\n    return [[a, b]]")
    assert not vars(ast.parse("a").body[0].value.ctx)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def add(a, b)\n    return a", {"parses"}),
        ("def plus(a, b):\n    return a + b", {"defines"}),
        ("if False:\n    x = [add for add in ()]", {"defines"}),
        ("def add(a):\n    return a", {"arity"}),
        ("def add(a, c):\n    return a + c", {"arity"}),
        ("def add(a, b, c):\n    return a + b + c", {"arity"}),
        ("def add(a, b, *, c):\n    return a + b + c", {"arity"}),
        ("def add(a, b):\n    a += b", {"returns"}),
        ("def add(a, b):\n    print(a + b)", {"returns", "io"}),
        ("def add(a, b):\n    a, b = int(input()), int(input())\n    return a + b", {"io"}),
        ("def add(a, b):\n    def inner():\n        return a + b\n    inner()", {"returns"}),
        ("def add(a, b):\n    return a + b + c", {"names"}),
        ("def add(a, b):\n    return math.fsum([a, b])", {"names"}),
        ("def add(a, b):\n    return True", {"statement"}),
        ("def add(a, b):\n    return []", {"statement"}),
        ("def add(*args, **kwargs):\n    return sum([1, 2])", {"statement"}),
        ("def add(a, b=0, *, c=1):\n    return a + b + c", set()),
        ("add = lambda a, b: a + b", set()),
        ("try:\n    import numpy\nexcept ImportError:\n    def add(a, b):\n        return a + b", set()),
        ("class add:\n    def __new__(cls, a, b):\n        return a + b", set()),
        ("import math\ndef add(a, b):\n    return math.fsum([a, b])", set()),
        ("from functools import lru_cache\n@lru_cache\ndef add(a, b):\n    return a + b", set()),
        ("def add(a, b):\n    print(a)\n    return a + b", set()),
        ("from math import *\ndef add(a, b):\n    return a + b", set()),
        ("from os import *\nsystem('ls')\ndef add(a, b):\n    return a + b", {"effects"}),
    ],
)
def test_each_rule_is_broken_on_its_own(code, expected):
    assert broken(code) == expected


def test_a_parameter_that_is_not_used_costs_part_of_a_rule():
    scores = judged("def add(a, b):\n    return a")
    assert scores["statement"] == RuleScore(score=0.75, reason="line 1: add does not use b")


def test_reasons_that_count_one_thing_say_so():
    assert judged("def add(a):\n    return a")["arity"].reason == "line 1: add takes 1 parameter; the tests pass 2"
    question = "Add two numbers, both of them integers."
    scores = judged(f"# {question}\n{GOOD}", question=question)
    assert scores["copied"].reason == "repeats 1 line of the question"


def test_reasons_name_the_line_and_stay_one_printable_line():
    reason = judged("\n\nimport os\ndef add(a, b):\n    return os.system('\x1b[2J')")["effects"].reason
    assert reason == "line 5: uses .system"
    assert "\x1b" not in judged("def \u202eadd(a, b):\n    return a")["parses"].reason
    assert all(s.reason for s in judged(f"def add(a):\n    return {'b' * 500}").values() if s.score < 1)
    assert len(judged(f"def add(a, b):\n    return {'b' * 500}")["names"].reason) == 200


def test_names_the_tests_define_or_import_are_not_asked_for():
    tests = "import math\ndef near(a, b):\n    return abs(a - b) < 1e-9\nassert near(root(4), math.sqrt(4))"
    assert check("def root(x):\n    return x ** 0.5", tests)["defines"] == 1


def test_a_tested_function_may_have_the_name_of_a_builtin():
    tests = "assert sum(10, 15) == 6\nassert sum(100, 150) == 93"
    assert broken("def sum(a, b):\n    return sum_of(a) + b\ndef sum_of(a):\n    return a", tests) == set()
    assert broken("def sum(a):\n    return a", tests) == {"arity"}


PROGRAM = "n = int(input())\nprint(n * 2)"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (PROGRAM, set()),
        ("import sys\nfor line in sys.stdin:\n    print(int(line) * 2)", set()),
        ("print(*(2 * int(line) for line in open(0)))", set()),
        ("import sys\nn = int(sys.stdin.readline())\nsys.stdout.write(str(2 * n))\nsys.exit(0)", set()),
        ("import sys\ndef main():\n    sys.stdout.write(str(2 * int(sys.stdin.read())) + '\\n')\nmain()", set()),
        ("import sys\nsys.stdout.writelines(str(2 * int(line)) for line in sys.stdin)", set()),
        ("import sys\nread, print = sys.stdin.readline, sys.stdout.write\nprint(str(2 * int(read())))", set()),
        ("import sys\nsys.stdin.read()\nsys.stdout.write('4')", {"hardcoded"}),
        ("import os, sys, io\nn = int(io.BytesIO(os.read(0, os.fstat(0).st_size)).readline())\nprint(2 * n)", set()),
        ("import threading\nthreading.stack_size(1 << 27)\nt = threading.Thread(target=lambda: print(input()))", set()),
        (
            "import os, sys\nif os.path.exists('i.txt'): sys.stdin = open('i.txt')\nprint(2 * int(input()))",
            set(),
        ),
        ("if 'LOCAL' not in globals(): print(2 * int(input()))", set()),
        ("globals()['print'](input())", {"effects", "io", "hardcoded"}),
        ("import gc\ngc.disable()\nprint(2 * int(input()))", set()),
        ("import gc\nprint(gc.get_objects(), input())", {"effects"}),
        ("import resource as r\nr.setrlimit(r.RLIMIT_STACK, (r.RLIM_INFINITY,) * 2)\nprint(2 * int(input()))", set()),
        ("def solve(n):\n    return 2 * n", {"io"}),
        ("print(4)", {"io"}),
        ("n = int(input())", {"io", "hardcoded"}),
        ("import subprocess\nprint(input())", {"effects"}),
        ("import os\nprint(os.listdir(input()))", {"effects"}),
    ],
)
def test_program_must_read_and_print(code, expected):
    assert broken(code, TABLE, origin=TaskOrigin.CODE_CONTESTS) == expected


def test_program_with_tests_that_cannot_be_read_is_still_taken_for_a_program():
    assert broken("print(4)", "input: 2", origin=TaskOrigin.CODE_CONTESTS) == {"io"}


@pytest.mark.parametrize("origin", TaskOrigin)
def test_a_peer_s_word_on_the_origin_makes_no_program_of_a_function(origin):
    assert broken("def add(a, b):\n    return {(1, 2): 3, (0, 5): 5}[a, b]", origin=origin) == {"hardcoded"}
    assert broken("def add(a, b):\n    return a + b + len(open('x').read())", origin=origin) == {"effects"}


FENCED = f"```python\n{GOOD}\n```"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (FENCED, 1),
        (f"Here you are:\n{FENCED}\nThat adds.", 1),
        (f"```python\n{GOOD}", 0),
        (f"{FENCED}\n{FENCED}", 0.5),
        (f"{FENCED}\n~~~\nx = 1\n~~~", 0.5),
        (f"{FENCED}\n{'It adds the numbers. ' * 20}", 0.5),
    ],
)
def test_the_answer_is_one_closed_block(text, score):
    assert check(GOOD, text=text)["fence"] == score


def test_length_costs_in_proportion():
    code = GOOD + "\n" + "#" * (12_000 - len(GOOD) - 1)
    assert judged(code)["length"] == RuleScore(score=0.5, reason="the code has 12,000 characters, more than 6,000")


@pytest.mark.parametrize(
    ("code", "score"),
    [
        (f"{GOOD}\n\nassert add(1,2)==3", 0.5),
        (TESTS, 0),
        ("# Write a function that adds two given numbers.", 0),
        (f"# Write a function that adds two given numbers.\n{GOOD}", 0),
        ("# Write a function that adds two given numbers.\ntotal_of_both_numbers = 0\n", 0.5),
        (f"{GOOD}\n\nassert add(2, 2) == 4", 1),
    ],
)
def test_copies_of_the_tests_and_the_question_cost(code, score):
    assert check(code, question="Write a function that adds two given numbers.")["copied"] == score


def test_no_reference_solution_of_the_built_in_problems_breaks_a_fatal_rule():
    for problem in load_problems():
        assert not fatal(scores_of(problem.reference, problem.task)), problem.task.task_id


def test_no_reference_solution_of_mbpp_breaks_a_fatal_rule():
    rows = [json.loads(line) for line in Path(real_mbpp()).read_text(encoding="utf-8").splitlines()]
    assert len(rows) > 700
    for row in rows:
        task = mbpp.to_task(row)
        assert not fatal(scores_of(row["code"], task)), row["task_id"]


def fatal(scores):
    return [(name, score.reason) for name, score in scores.items() if RULES[name].fatal and score.score == 0]


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
    assert check(code)["parses"] in (0, 1)
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
    assert broken(code) == {"names"}


@pytest.mark.timeout(20)
def test_a_megabyte_of_fields_does_not_hold_up_a_round():
    fields = "f'" + "{1}" * 300_000 + "'"  # parsing it takes CPython 3.11 about 50 s
    assert check(fields, TESTS) == {"parses": 0}
    assert "defines" not in check(GOOD, fields)


def test_code_and_tests_are_looked_into_up_to_a_length():
    padding = "#" * (MAX_SOURCE_CHARS - len(TESTS) - 1)
    assert "defines" in check(GOOD, f"{TESTS}\n{padding}")
    assert "defines" not in check(GOOD, f"{TESTS}\n{padding}#")


def test_code_is_never_executed(tmp_path):
    victim = tmp_path / "victim"
    check(f"open({str(victim)!r}, 'w')\ndef add(a, b): return 1", f"open({str(victim)!r}, 'w')")
    assert not victim.exists()


@given(st.text(), st.text())
def test_any_code_and_any_tests_give_scores_of_0_to_1(code, tests):
    assert all(0 <= score <= 1 for score in check(code, tests).values())


@pytest.mark.parametrize(
    "tests",
    [
        "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(4, 5) == 9\ncheck(add)",
        "def check(candidate):\n    x = 4\n    assert candidate(x, 5) == 9\ncheck(add)",
        "def check(add):\n    assert add(1, 2) == 3\ncheck(add)",
    ],
)
def test_tests_in_the_form_of_a_check_break_no_rule_of_a_good_solution(tests):
    assert broken(GOOD, tests) == set()


METHOD = "class Solution:\n    def add(self, a, b):\n        return "
SAME = "def same(found, expected):\n    return found == expected\n"


@pytest.mark.parametrize(
    "tests",
    [
        "assert Solution().add(11, 12) == 23\nassert Solution().add(14, 15) == 29",
        SAME + "assert same(Solution().add(11, 12), 23)\nassert same(Solution().add(14, 15), 29)",
        "def check(f):\n    assert f(11, 12) == 23\n    assert f(14, 15) == 29\ncheck(Solution().add)",
    ],
)
def test_tests_of_a_method_break_no_rule_of_a_good_solution_but_a_table_does(tests):
    assert broken(METHOD + "a + b", tests) == set()
    assert broken(METHOD + "{(11, 12): 23, (14, 15): 29}[a, b]", tests) == {"hardcoded"}
    assert "defines" in broken(GOOD, tests)
