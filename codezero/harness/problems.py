"""Problems of benchmarks, and functions that build them from the rows of any dataset."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codezero.tasks.code_contests import HOW_TO_ANSWER
from codezero.tasks.rows import BadRow, pairs, text_field
from codezero.tasks.testcases import StdinExample, TestSuite
from codezero.types import Task, TaskOrigin

MAX_FIELD_CHARS = 40_000
MAX_CASE_CHARS = 8 << 20
MAX_SUITE_CHARS = 64 << 20
MAX_SHOWN_CHARS = 4_000
"""The largest length of the public examples that are kept as the text of the tests, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchProblem:
    """One problem, with all the tests that decide it."""

    name: str
    """The problem's id in its dataset."""
    task: Task
    """The solver's task; its tests are the public ones, as text, or one hidden test of a function without any, which
    tells its name and counts as not shown."""
    suite: TestSuite = TestSuite()  # noqa: RUF009 - it is frozen
    """The tests to execute; empty until `sources.with_tests` reads them from the task, if it has all of them."""
    prelude: str = ""
    """Code that is executed before every solution."""


def program(
    name: str, statement: str, public: Sequence[StdinExample], hidden: Sequence[StdinExample] = ()
) -> BenchProblem:
    """Returns a problem that a program from stdin to stdout solves. Raises BadRow: it has no tests, or too many."""
    suite = TestSuite(examples=tuple(dict.fromkeys((*public, *hidden))))
    _check_size(len(case.given) + len(case.expected) for case in suite.examples)
    question = f"{statement}\n\n{HOW_TO_ANSWER}"
    task = Task(origin=TaskOrigin.CODE_CONTESTS, question=question, tests=_table(public))
    return BenchProblem(name=name, task=task, suite=suite)


def _table(examples: Sequence[StdinExample]) -> str:
    table = ""
    for case in examples:
        block = f"Input:\n{case.given.strip()}\nOutput:\n{case.expected.strip()}\n"
        if len(table) + len(block) > MAX_SHOWN_CHARS:
            break
        table += block
    return table


_SAME = """\
def same(found, expected):
    return (list(found) if isinstance(found, tuple) else found) == expected
"""
"""Compares results as LiveCodeBench does: LeetCode's tests are JSON, without tuples, so a tuple counts as a list."""


def function(
    name: str,
    statement: str,
    starter: str,
    called: str,
    public: Sequence[StdinExample],
    hidden: Sequence[StdinExample] = (),
) -> BenchProblem:
    """Returns a problem in LeetCode's form: inputs are arguments in JSON, one a line, outputs are JSON. Raises BadRow:
    they are not, or `called` is not an identifier."""
    if not called.isidentifier():
        raise BadRow("the function's name is not an identifier")
    target = f"Solution().{called}" if "class Solution" in starter else called
    cases = [_call(target, case) for case in dict.fromkeys((*public, *hidden))]
    _check_size(len(case) for case in cases)
    shown: list[str] = []
    for case in cases[: max(len(public), 1)]:
        if sum(map(len, shown)) + len(case) <= MAX_SHOWN_CHARS:
            shown.append(case)
    how = f"Write the complete solution, beginning with this:\n{starter.rstrip()}" if starter.strip() else ""
    task = Task(
        origin=TaskOrigin.MBPP,
        question=f"{statement}\n\n{how or f'Write the function {called}.'}",
        tests="\n".join([_SAME, *shown]),
    )
    suite = TestSuite(setup=_SAME, statements=tuple(cases))
    return BenchProblem(name=name, task=task, suite=suite, prelude=_IMPORTS)


_IMPORTS = """\
from typing import *
from collections import *
from heapq import *
from bisect import *
from functools import *
from itertools import *
from math import *
from builtins import pow
import collections, heapq, bisect, functools, itertools, math, string, re, random, operator
"""
"""The imports that LeetCode makes before every solution, without the pow of math, which takes no modulus."""
_FUTURE = re.compile(r"^from __future__ import (?:\([^)]*\))?.*\n?", re.MULTILINE)


def with_prelude(prelude: str, code: str) -> str:
    """Returns the program to execute: the code after the prelude, with its imports from `__future__` before both."""
    return "".join((*(line.rstrip("\n") + "\n" for line in _FUTURE.findall(code)), prelude, _FUTURE.sub("", code)))


def _call(target: str, case: StdinExample) -> str:
    try:
        arguments = [json.loads(line) for line in case.given.split("\n") if line.strip()]
        expected = json.loads(case.expected)
    except (ValueError, RecursionError):
        raise BadRow("a functional test is not JSON") from None
    return f"assert same({target}({', '.join(map(repr, arguments))}), {expected!r})"


def _check_size(sizes: Any) -> None:
    sizes = list(sizes)
    if not sizes:
        raise BadRow("there are no tests")
    if sum(sizes) > MAX_SUITE_CHARS:
        raise BadRow(f"tests are longer than {MAX_SUITE_CHARS >> 20} MiB")


def examples(value: object, field: str) -> list[StdinExample]:
    """Returns examples from {"input": [...], "output": [...]} or [{"input": ..., "output": ...}, ...]; [] for None.

    Raises BadRow: the value has another form.
    """
    if value is None:
        return []
    if isinstance(value, Mapping):
        found = pairs(value, "input", "output", field)
        value = [{"input": given, "output": expected} for given, expected in found]
    if not isinstance(value, list):
        raise BadRow(f"{field} is not a list of tests")
    return [_example(case, field) for case in value]


def _example(case: object, field: str) -> StdinExample:
    if not isinstance(case, Mapping):
        raise BadRow(f"{field} holds something that is not a test")
    return StdinExample(given=_text(case.get("input"), field), expected=_text(case.get("output"), field))


def _text(value: object, field: str) -> str:
    """Returns a test's input or output, from text, which may be empty, or a list of lines. Raises BadRow."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)
    if not isinstance(value, str):
        raise BadRow(f"a text in {field} is missing or not text")
    if len(value) > MAX_CASE_CHARS:
        raise BadRow(f"a text in {field} is longer than {MAX_CASE_CHARS} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRow(f"a text in {field} is not valid Unicode") from None
    return value.replace("\r\n", "\n").rstrip("\n") + "\n"


def name_of(row: object, keys: Sequence[str], number: int) -> str:
    """Returns the row's own id, or else its number in the file. Raises BadRow: the row is not a mapping."""
    if not isinstance(row, Mapping):
        raise BadRow("row is not a mapping of fields")
    found = next((row[key] for key in keys if isinstance(row.get(key), str | int)), number)
    return str(found)[:200]


def statement(row: object, key: str) -> str:
    return text_field(row, key, MAX_FIELD_CHARS)
