import base64
import datetime
import json
import pickle
import zlib

import pytest

from codezero.cli.evaluation import DATASETS as CHOICES
from codezero.harness import hidden_tests
from codezero.harness.problems import with_prelude
from codezero.harness.schemas import DATASETS, code_contests_row, codeforces_row, humaneval, livecodebench_row, mbpp_row
from codezero.harness.sources import with_tests
from codezero.sandbox.run import run_tests
from codezero.tasks.rows import BadRow
from codezero.tasks.testcases import StdinExample, parse_tests
from codezero.types import CaseOutcome, TaskOrigin
from tests.strangers import Reader

HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "def half(x):\n    return x / 2\n\ndef quarter(x):\n    '''A quarter of x, by way of half.'''\n",
    "entry_point": "quarter",
    "canonical_solution": "    return half(half(x))\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate(4) == 1\n    assert candidate(8) == 2\n",
}
MBPP = {
    "task_id": 11,
    "text": "Write a function to add two numbers.",
    "test_list": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
    "test_setup_code": "",
}
SANITIZED = {
    "task_id": 11,
    "prompt": "Write a function to take a root.",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(root(4), 2)"],
}
CODE_CONTESTS = {
    "name": "1_A. Sum",
    "description": "Add two numbers.",
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": ["3 4\n"], "output": ["7\n"]},
    "generated_tests": {"input": ["1 2\n", "5 5\n"], "output": ["3\n", "10\n"]},
    "input_file": "",
}
LCB_STDIN = {
    "question_id": "abc1",
    "question_title": "Sum",
    "question_content": "Add two numbers.",
    "starter_code": "",
    "metadata": "{}",
    "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
    "private_test_cases": json.dumps([{"input": "3 4", "output": "7", "testtype": "stdin"}]),
}
LCB_FUNCTION = {
    "question_id": "2",
    "question_content": "Give the indices.",
    "starter_code": "class Solution:\n    def find(self, items: List[int], item: int) -> List[int]:\n        ",
    "metadata": json.dumps({"func_name": "find"}),
    "public_test_cases": json.dumps([{"input": "[3, 5]\n5", "output": "[1]", "testtype": "functional"}]),
    "private_test_cases": "",
}
OPEN_R1 = {
    "id": "1/A",
    "description": "Add two numbers.",
    "input_format": "Two numbers.",
    "output_format": "Their sum.",
    "note": None,
    "examples": [{"input": "1 2", "output": "3"}],
    "official_tests": [{"input": "1 2", "output": "3"}, {"input": "3 4", "output": "7"}],
    "official_tests_complete": True,
    "input_mode": "stdio",
    "generated_checker": None,
    "interaction_format": None,
}
DEEPCODER = {"problem": "Add two numbers.", "tests": json.dumps([{"input": "1 2\n", "output": "3\n"}])}

DEEP = []
for _ in range(20_000):
    DEEP = [DEEP]


def packed(value):
    """As LiveCodeBench stores its private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def passes(problem, code):
    results = run_tests(with_prelude(problem.prelude, code), problem.suite)
    assert len(results) == problem.suite.num_cases
    return all(result.outcome is CaseOutcome.PASS for result in results)


def test_the_choices_of_the_command_line_are_the_schemas():
    assert set(CHOICES) == set(DATASETS)


def test_humaneval_runs_its_check_with_what_the_prompt_defines():
    problem = humaneval(HUMANEVAL, 0)
    assert problem.name == "HumanEval/0"
    assert HUMANEVAL["prompt"].strip() in problem.task.question
    assert passes(problem, "def quarter(x):\n    return half(half(x))")
    assert not passes(problem, "def quarter(x):\n    return half(x)")
    assert not passes(problem, "")  # the prompt alone is no solution
    future = "'''Quarters.'''\nfrom __future__ import annotations\n"
    assert passes(problem, f"{future}def quarter(x: 'Number') -> float:\n    return half(half(x))")
    future = "from __future__ import (  # as formatters write it\n    annotations,\n)\n"
    assert passes(problem, f"{future}def quarter(x: 'Number') -> float:\n    return half(half(x))")
    assert parse_tests(problem.task.tests).num_cases == 2


def test_mbpp_full_and_sanitized():
    problem = with_tests(mbpp_row(MBPP, 0), Reader())
    assert (problem.name, problem.suite.num_cases) == ("11", 2)
    assert passes(problem, "def add(a, b): return a + b")
    sanitized = with_tests(mbpp_row(SANITIZED, 0), Reader())
    assert "Write a function to take a root." in sanitized.task.question
    assert passes(sanitized, "def root(x): return x ** 0.5")


def test_code_contests_runs_all_tests_and_shows_the_public_ones():
    problem = code_contests_row(CODE_CONTESTS, 0)
    assert problem.name == "1_A. Sum"
    assert problem.task.origin is TaskOrigin.CODE_CONTESTS
    assert problem.task.tests == "Input:\n1 2\nOutput:\n3\n"
    assert problem.suite.num_cases == 3  # a generated test repeats the public one
    assert passes(problem, "print(sum(map(int, input().split())))")
    assert not passes(problem, "print(3)")


@pytest.mark.parametrize(
    "row", [LCB_STDIN, {**LCB_STDIN, "private_test_cases": packed(LCB_STDIN["private_test_cases"])}]
)
def test_livecodebench_programs_have_public_and_private_tests(row):
    problem = livecodebench_row(row, 0)
    assert problem.name == "abc1"
    assert problem.suite.examples == (
        StdinExample(given="1 2\n", expected="3\n"),
        StdinExample(given="3 4\n", expected="7\n"),
    )
    assert "3 4" not in problem.task.tests + problem.task.question
    assert passes(problem, "print(sum(map(int, input().split())))")


def test_livecodebench_functions_get_json_arguments_and_may_return_tuples():
    problem = livecodebench_row(LCB_FUNCTION, 0)
    assert "class Solution" in problem.task.question
    body = "class Solution:\n    def find(self, items: List[int], item: int) -> List[int]:\n        return {}"
    assert passes(problem, body.format("[items.index(item)]"))
    assert passes(problem, body.format("(items.index(item),)"))
    assert passes(problem, body.format("[items.index(item) * pow(2, 3, 7)]"))
    assert not passes(problem, body.format("[0]"))
    assert parse_tests(problem.task.tests).num_cases == 1


def test_a_bare_function_may_be_asked_for_too():
    row = {**LCB_FUNCTION, "starter_code": "def find(items, item):"}
    assert passes(livecodebench_row(row, 0), "def find(items, item): return [items.index(item)]")


def test_codeforces_in_both_schemas():
    problem = codeforces_row(OPEN_R1, 0)
    assert "Input:\nTwo numbers." in problem.task.question
    assert "Example input:\n1 2\nExample output:\n3" in problem.task.question
    assert problem.suite.num_cases == 2
    assert passes(problem, "print(sum(map(int, input().split())))")
    deepcoder = codeforces_row(DEEPCODER, 7)
    assert deepcoder.name == "7"
    assert deepcoder.task.tests == ""  # its only test decides, so none is shown
    assert passes(deepcoder, "print(sum(map(int, input().split())))")


def test_deepcoder_keeps_functions_as_livecodebench_does():
    case = {"input": "[3, 5]\n5", "output": "[1]", "testtype": "functional", "metadata": {"func_name": "find"}}
    row = {"problem": "p", "tests": json.dumps([case]), "starter_code": LCB_FUNCTION["starter_code"], "metadata": {}}
    problem = livecodebench_row(row, 0)
    assert problem.suite.statements[0] == "assert same(Solution().find([3, 5], 5), [1])"
    assert "[3, 5]" not in problem.task.question
    separator = {**row, "tests": json.dumps([{**case, "input": '"a\u2028b"'}])}  # JSON strings may hold it as it is
    assert livecodebench_row(separator, 0).suite.statements[0] == r"assert same(Solution().find('a\u2028b'), [1])"


@pytest.mark.parametrize("row", [None, 5, [], "x", {}, {"task_id": {}}, {"prompt": 5}, {"description": "x" * 99_999}])
@pytest.mark.parametrize("name", DATASETS)
def test_a_row_of_another_kind_is_a_bad_row(name, row):
    with pytest.raises(BadRow):
        DATASETS[name].to_problem(row, 0)


@pytest.mark.parametrize(
    ("to_problem", "good", "changes"),
    [
        (humaneval, HUMANEVAL, {"entry_point": "f); import os; (f"}),
        (humaneval, HUMANEVAL, {"test": "def check("}),
        (humaneval, HUMANEVAL, {"prompt": "(" * 30_000}),
        (mbpp_row, MBPP, {"test_list": ["import os"]}),
        (mbpp_row, MBPP, {"test_list": ["assert ("]}),
        (mbpp_row, SANITIZED, {"test_imports": "import math"}),
        (code_contests_row, CODE_CONTESTS, {"public_tests": {"input": ["1"], "output": []}}),
        (code_contests_row, CODE_CONTESTS, {"private_tests": {"input": [5], "output": ["1"]}}),
        (code_contests_row, CODE_CONTESTS, {"private_tests": {"input": ["\ud800"], "output": ["1"]}}),
        (code_contests_row, CODE_CONTESTS, {"description": "see <image>"}),
        (code_contests_row, CODE_CONTESTS, {"description": "Print a pair. If there are several, print any of them."}),
        (code_contests_row, CODE_CONTESTS, {"input_file": "input.txt"}),
        (codeforces_row, OPEN_R1, {"generated_checker": "check.py"}),
        (codeforces_row, OPEN_R1, {"interaction_format": "Ask."}),
        (codeforces_row, OPEN_R1, {"input_mode": "file"}),
        (codeforces_row, OPEN_R1, {"official_tests_complete": False}),
        (codeforces_row, OPEN_R1, {"examples": [], "official_tests": []}),
        (codeforces_row, DEEPCODER, {"tests": "[[[" * 20_000}),
        (codeforces_row, DEEPCODER, {"tests": '{"inputs": ["1"]}'}),
        (livecodebench_row, LCB_STDIN, {"private_test_cases": "not base64!"}),
        (livecodebench_row, LCB_STDIN, {"private_test_cases": base64.b64encode(b"not zlib").decode()}),
        (livecodebench_row, LCB_STDIN, {"public_test_cases": "{"}),
        (livecodebench_row, LCB_STDIN, {"public_test_cases": '[{"input": "1", "testtype": "stdin"}]'}),
        (livecodebench_row, LCB_FUNCTION, {"private_test_cases": LCB_STDIN["private_test_cases"]}),
        (livecodebench_row, LCB_FUNCTION, {"metadata": "{}"}),
        (livecodebench_row, LCB_FUNCTION, {"metadata": '{"func_name": "f(); import os; f"}'}),
        (
            livecodebench_row,
            LCB_FUNCTION,
            {"public_test_cases": '[{"input": "NaN", "output": "x", "testtype": "functional"}]'},
        ),
        *(
            (livecodebench_row, LCB_FUNCTION, {"public_test_cases": [{**case, "testtype": "functional"}]})
            for case in (
                {"input": [b"a"], "output": "1"},
                {"input": [1], "output": datetime.date(2026, 1, 2)},
                {"input": [{b"a": 1}], "output": "1"},
                {"input": [DEEP], "output": "1"},
            )
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_a_bad_row(to_problem, good, changes):
    with_tests(to_problem(good, 0), Reader())
    with pytest.raises(BadRow):
        with_tests(to_problem({**good, **changes}, 0), Reader())


class Bomb:
    def __reduce__(self):
        return print, ("PICKLE LOADED",)


@pytest.mark.parametrize("value", [Bomb(), ["a"], 5, ("a", "b"), {"a": "b"}, b"[]"], ids=lambda v: type(v).__name__)
def test_a_pickle_is_never_loaded(value, capsys):
    with pytest.raises(BadRow, match="never loaded"):
        hidden_tests.from_packed(packed(value))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("protocol", range(2, 6))
def test_the_string_in_a_pickle_is_read_without_loading_it(protocol):
    text = json.dumps([{"input": "ü" * 70_000, "output": "1"}])
    data = base64.b64encode(zlib.compress(pickle.dumps(text, protocol=protocol))).decode()
    assert hidden_tests.from_packed(data) == json.loads(text)


def test_packed_tests_that_unpack_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(hidden_tests, "MAX_SUITE_CHARS", 1 << 20)
    bomb = base64.b64encode(zlib.compress(b"\0" * (8 << 20))).decode()
    with pytest.raises(BadRow, match="longer than 1 MiB"):
        hidden_tests.from_packed(bomb)


def test_a_truncated_pickle_is_a_bad_row():
    data = base64.b64encode(zlib.compress(pickle.dumps("[]")[:-3])).decode()
    with pytest.raises(BadRow):
        hidden_tests.from_packed(data)
