"""The tests of a task, split into setup and single cases. They are only parsed, never executed."""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from typing import TypeVar

from codezero.workers import Death, Job, Workers

_T = TypeVar("_T")

MAX_SOURCE_CHARS = 20_000
"""The most characters of code or tests that are parsed. Nesting 25 times as deep crashes CPython 3.10, and f-strings of
1 MB take it a minute; up to here everything tried took less than 0.1 s."""
MAX_UNFOLDED = 500
"""The most statements of a `check(candidate)` that are examined, those of loops once for each iteration."""
UNPARSEABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""The exceptions of `ast.parse` on hostile text: bad syntax, null bytes, nesting too deep for its stack."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as Python's parser counts them: a form feed, for example, does not end one."""


def bound_name(alias: ast.alias) -> str:
    """Returns the name that a part of an import statement binds."""
    return alias.asname or alias.name.split(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class StdinExample:
    """A test of a program: its input on stdin, and the output that it must print."""

    given: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSuite:
    """All tests of a task. Its cases are of one kind; no cases of any kind mean that the text could not be read."""

    __test__ = False  # not for pytest to collect

    setup: str = ""
    """The statements that are not cases: imports, definitions, and what comes before the first case."""
    statements: tuple[str, ...] = ()
    """The source of each test that is a statement: an assert, or a call such as HumanEval's `check(f)`. It begins with
    the statements since the previous test, such as `x = 2`; the last test also has those after it."""
    examples: tuple[StdinExample, ...] = ()

    @property
    def num_cases(self) -> int:
        return len(self.statements) + len(self.examples)


READ_TESTS = Job("read_tests", str, TestSuite)
IS_PYTHON = Job("is_python", str, bool)
PARSING_S = 10.0
"""Seconds of processor time that each of these jobs may take."""


def read_tests(workers: Workers, text: str) -> TestSuite:
    """Returns `parse_tests` of the text, by a worker process; an empty suite if it dies of that. Raises WorkerError."""
    found = workers.ask(READ_TESTS, text, PARSING_S)
    return TestSuite() if isinstance(found, Death) else found


def are_python(workers: Workers, sources: Iterable[str]) -> bool:
    """Returns whether all sources parse, by worker processes. Raises WorkerError."""
    return all(workers.ask(IS_PYTHON, source, PARSING_S) is True for source in sources)


def is_python(source: str) -> bool:
    """Returns whether a text of any length parses. Only for worker processes: a long text may crash one."""
    return _parsed(source) is not None


def parse_tests(text: str) -> TestSuite:
    """Returns the suite in `text`: a table of `Input:` and `Output:` blocks (tasks/code_contests), else Python
    statements.

    Only for worker processes, and for codezero's own text.
    """
    text = text.replace("\r\n", "\n")
    examples = tuple(_examples(text)) if text.lstrip().startswith("Input:") else ()
    if examples:
        return TestSuite(examples=examples)
    tree = parse_source(text)
    if tree is None:
        return TestSuite()
    lines = _LINE.findall(text.encode())
    unfolded = _unfolded(tree.body)
    setup: list[str] = []
    between: list[str] = []
    statements: list[str] = []
    for node in tree.body:
        source = _source_of(node, lines)
        if _is_case(node):
            statements += unfolded or ["\n".join([*between, source])]
            between = []
        elif not isinstance(node, ast.Expr):
            is_between = statements and not isinstance(node, _DEFINITIONS)
            (between if is_between else setup).append(source)
    if between:
        statements.append("\n".join([statements.pop(), *between]))
    return TestSuite(setup="\n".join(setup), statements=tuple(statements))


def _is_case(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _unfolded(body: list[ast.stmt]) -> list[str]:
    """Returns the single cases of tests in HumanEval's form: `def check(candidate)`, made of asserts, loops over them
    and variables for them, with one call `check(f)`. Empty for any other form."""
    cases = [node for node in body if _is_case(node)]
    call = cases[0].value if len(cases) == 1 and isinstance(cases[0], ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or len(call.args) != 1 or call.keywords:
        return []
    checks = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == call.func.id]
    if len(checks) != 1 or len(checks[0].args.args) != 1:
        return []
    put = {checks[0].args.args[0].arg: call.args[0]}
    try:
        found = [ast.unparse(node) for node in _single(checks[0].body, put, iter(range(MAX_UNFOLDED)))]
    except UNPARSEABLE:
        return []
    return found if sum(map(len, found)) <= MAX_SOURCE_CHARS else []


def _single(body: list[ast.stmt], known: dict[str, ast.expr], left: Iterator[int]) -> Iterator[ast.stmt]:
    """Yields the asserts of a block, with variables replaced by their values, and loops that do not iterate over a list
    or tuple display. `left` has an item for each statement that may be examined. Raises ValueError if there are more,
    or other statements, or if the value of a variable may change."""
    for number, node in enumerate(body):
        if next(left, None) is None:
            raise ValueError("too many statements")
        if isinstance(node, ast.Assert):
            yield _Put(known).visit(deepcopy(node))
        elif isinstance(node, ast.For) and not node.orelse:
            over = _Put(known).visit(deepcopy(node.iter))
            rows = over.elts if isinstance(over, ast.List | ast.Tuple) else []
            for row in rows:
                yield from _single(node.body, {**known, **_named(node.target, row, node.body)}, left)
            if not rows:
                if not all(isinstance(inner, ast.Assert) for inner in node.body):
                    raise ValueError("a loop of more than asserts")
                yield _Put(known).visit(deepcopy(node))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            value = _Put(known).visit(deepcopy(node.value))
            known = known | _named(node.targets[0], value, body[number + 1 :])
        elif not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            raise ValueError("other statements than asserts")


def _named(target: ast.expr, value: ast.expr, after: list[ast.stmt]) -> dict[str, ast.expr]:
    """Returns the expression that each name of a target stands for. Raises ValueError if it cannot replace the name: it
    is mutable or computed, and the name is not used exactly once and outside of loops."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple | ast.List):
        pairs = list(zip(target.elts, value.elts, strict=True))
    else:
        pairs = [(target, value)]
    found: dict[str, ast.expr] = {}
    for name, one in pairs:
        if not isinstance(name, ast.Name):
            raise ValueError("no name")
        if not isinstance(one, ast.Constant) and _num_uses(name.id, after) != 1:
            raise ValueError(f"{name.id} is used several times, or never")
        found[name.id] = one
    return found


def _num_uses(name: str, after: list[ast.stmt]) -> int:
    """Returns how often a name is read in `after` until it is assigned again; any uses in a loop count as two."""
    found = 0
    for node in after:
        now = node.iter if isinstance(node, ast.For) else node
        used = [one for one in ast.walk(now) if isinstance(one, ast.Name) and one.id == name]
        found += sum(isinstance(one.ctx, ast.Load) for one in used)
        if isinstance(node, ast.For):
            inside = (one for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name))
            found += 2 * any(one.id == name for one in inside)
        if isinstance(node, ast.Assign) and any(isinstance(one.ctx, ast.Store) for one in used):
            break
    return found


class _Put(ast.NodeTransformer):
    """A transformer that replaces variables by expressions. Raises ValueError if one of these is assigned."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._known:
            return node
        if not isinstance(node.ctx, ast.Load):
            raise ValueError(f"{node.id} is given another value")
        return self._known[node.id]


def _examples(text: str) -> Iterator[StdinExample]:
    """Yields the examples of a table: `Input:` up to the next `Output:`, that up to the next `Input:` or the end."""
    given: list[str] | None = None
    expected: list[str] | None = None
    for line in StringIO(text):
        if expected is None and given is not None:
            if line == "Output:\n":
                expected = []
            else:
                given.append(line)
        elif line == "Input:\n":
            if given is not None and expected is not None:
                yield StdinExample(given="".join(given), expected="".join(expected))
            given, expected = [], None
        elif expected is not None:
            expected.append(line)
    if given is not None and expected is not None:
        yield StdinExample(given="".join(given), expected="".join(expected))


def _source_of(node: ast.stmt, lines: list[bytes]) -> str:
    """Returns the source of a statement with its decorators. ast.get_source_segment leaves these out, and splits all
    lines again at each call."""
    assert node.end_lineno is not None  # the parser sets it for every statement
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    found = lines[first - 1 : node.end_lineno]
    found[-1] = found[-1][: node.end_col_offset]
    found[0] = found[0][node.col_offset :]
    return b"".join(found).decode()


def comparison(case: str) -> tuple[str, str] | None:
    """Returns `left` and `right` of a test `assert left == right`; None for others, or if Python cannot print it."""
    tree = parse_source(case)
    test = tree.body[0].test if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Assert) else None
    if not isinstance(test, ast.Compare) or [type(op) for op in test.ops] != [ast.Eq]:
        return None
    try:
        return ast.unparse(test.left), ast.unparse(test.comparators[0])
    except UNPARSEABLE:
        return None


def parse_source(source: str) -> ast.Module | None:
    """Returns the syntax tree of Python source; None if it is too long or does not parse."""
    return None if len(source) > MAX_SOURCE_CHARS else _parsed(source)


def scopes_of(source: str) -> list[symtable.SymbolTable] | None:
    """Returns the symbol tables of the functions and classes at the top level of source that `parse_source` parses;
    None if CPython would not compile it."""
    return _read_by(lambda: symtable.symtable(source, "solution", "exec").get_children())


def _parsed(source: str) -> ast.Module | None:
    return _read_by(lambda: ast.parse(source))


def _read_by(read: Callable[[], _T]) -> _T | None:
    try:
        with warnings.catch_warnings():
            for kind in (SyntaxWarning, DeprecationWarning):  # about the judged code, not codezero's
                warnings.simplefilter("ignore", kind)
            return read()
    except UNPARSEABLE:
        return None
