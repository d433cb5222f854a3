"""The tests of a task, taken apart: what is set up, and which single cases must hold. Parsed only, never executed."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

MAX_SOURCE_CHARS = 20_000
"""Longer code and tests are not parsed. Nesting 25 times as deep crashes CPython 3.10, and f-strings of 1 MB take it a
minute; up to here everything tried took less than 0.1 s."""
UNPARSEABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises on hostile text: bad syntax, null bytes, nesting too deep for its stack."""

_EXAMPLE = re.compile(r"^Input:\n(.*?)^Output:\n(.*?)(?=^Input:\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A test that is a statement: an assert, or a call such as HumanEval's `check(f)`."""

    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A test of a program: what it reads from stdin, and what it must print."""

    given: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSuite:
    """All tests of a task. `cases` are of one kind; neither kind at all means that the text could not be read."""

    __test__ = False  # no class of tests for pytest

    setup: str = ""
    """What stands among the statements and is no case: imports, definitions, assignments."""
    statements: tuple[Statement, ...] = ()
    examples: tuple[Example, ...] = ()

    @property
    def num_cases(self) -> int:
        return len(self.statements) + len(self.examples)


def parse_tests(text: str) -> TestSuite:
    """The suite in `text`: a table of `Input:` and `Output:` blocks (tasks/code_contests), else Python statements."""
    text = text.replace("\r\n", "\n")
    examples = tuple(Example(given=given, expected=expected) for given, expected in _EXAMPLE.findall(text))
    if examples and text.lstrip().startswith("Input:"):
        return TestSuite(examples=examples)
    tree = parse_source(text)
    if tree is None:
        return TestSuite()
    setup, statements = [], []
    for node in tree.body:
        is_case = isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        source = ast.get_source_segment(text, node) or ""
        if is_case:
            statements.append(Statement(source=source))
        elif not isinstance(node, ast.Expr):
            setup.append(source)
    return TestSuite(setup="\n".join(setup), statements=tuple(statements))


def comparison(case: Statement) -> tuple[str, str] | None:
    """`left` and `right` of a test `assert left == right`; None of any other, and of one that Python cannot print."""
    tree = parse_source(case.source)
    test = tree.body[0].test if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Assert) else None
    if not isinstance(test, ast.Compare) or [type(op) for op in test.ops] != [ast.Eq]:
        return None
    try:
        return ast.unparse(test.left), ast.unparse(test.comparators[0])
    except UNPARSEABLE:
        return None


def parse_source(source: str) -> ast.Module | None:
    """The syntax tree of Python source; None when it is too long or does not parse."""
    if len(source) > MAX_SOURCE_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            for kind in (SyntaxWarning, DeprecationWarning):  # of the judged code, not of ours
                warnings.simplefilter("ignore", kind)
            return ast.parse(source)
    except UNPARSEABLE:
        return None
