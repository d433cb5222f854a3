"""Parses the unit tests of a proposal: asserts that compare the results of one function with literal values.

    check  := check and check | view == value | value == view | view is None | view in [value, ...]
            | abs(view - value) < number | f(value, ...) | not f(value, ...)
    view   := f(value, ...) | builtin(view) | view.method(value, ...) | view[constant]
    value  := constant | containers, signs and small arithmetic of values | builtin(value, ...)

Everything else is refused, so that a test does no work besides the call, and no expected value depends on the function
itself. The tests are only parsed, never executed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass

from codezero.tasks.testcases import parse_source

MAX_DEPTH = 16
"""The deepest nesting in a test."""
MAX_ITEMS = 1_000
"""The largest number of items of a `range`, and of repetitions as in `[0] * 10`."""
MAX_BASE, MAX_EXPONENT = 1_000_000, 100
MAX_NAME_CHARS = 60
MAX_TOLERANCE = 1.0

_BUILTINS = frozenset(dir(builtins))
_MAKERS = frozenset(
    {"abs", "bool", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "range", "round", "set", "sorted"}
    | {"str", "sum", "tuple"}
)
"""The builtins that may make a value; each takes time linear in the size of its arguments."""
_VIEWS = _MAKERS - {"range"} | {"next", "repr"}
"""The builtins that may be applied to the function's result."""
_METHODS = frozenset(
    {"copy", "count", "endswith", "get", "index", "items", "keys", "lower", "split", "startswith", "strip", "upper"}
    | {"values"}
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Div, ast.FloorDiv, ast.BitAnd, ast.BitOr, ast.BitXor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of the function under test, in tests that keep to the grammar."""

    num_tests: int
    num_different: int
    num_results: int
    """The number of different results that they expect."""
    names: frozenset[str]
    arities: frozenset[int]
    """The numbers of arguments of the calls, positional and named ones together."""


class _Unfit(Exception):
    """Raised for tests outside the grammar; its text is the reason, as a word."""


def read_tests(tests: str) -> Calls | str:
    """Returns the calls in the tests, or the reason why the tests are unfit, as a word."""
    tree = parse_source(tests)
    if tree is None:
        return "tests_unreadable"
    lines = [line for line in tests.split("\n") if line.strip()]
    if len(lines) != len(tree.body):
        return "not_one_line"
    reader = _Reader()
    try:
        for statement in tree.body:
            reader.assertion(statement)
    except _Unfit as unfit:
        return str(unfit)
    return Calls(
        num_tests=len(tree.body),
        num_different=len({ast.dump(statement) for statement in tree.body}),
        num_results=len(reader.expected),
        names=frozenset(reader.names),
        arities=frozenset(reader.arities),
    )


class _Reader:
    """Walks asserts by the grammar above. Every method raises _Unfit for nodes outside it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.arities: set[int] = set()
        self.expected: set[str] = set()
        """Dumps of what calls are compared with."""
        self.results: dict[str, str] = {}
        """The results of calls that are compared by ==, both as dumps of their syntax trees."""

    def assertion(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.Assert):
            raise _Unfit("not_an_assert")
        if node.msg is not None and not isinstance(node.msg, ast.Constant):
            raise _Unfit("forbidden_syntax")
        self.check(node.test, MAX_DEPTH)

    def check(self, node: ast.expr, depth: int) -> None:
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) and depth:
            for part in node.values:
                self.check(part, depth - 1)
        elif isinstance(node, ast.BoolOp):
            raise _Unfit("tautology")
        elif isinstance(node, ast.Compare):
            self.comparison(node)
        else:
            expected = True
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                expected, node = False, node.operand
            self.expected.add(ast.dump(ast.Constant(expected)))
            if not _is_call_of_subject(node):
                raise _Unfit("no_comparison")
            self.view(node, MAX_DEPTH)

    def comparison(self, node: ast.Compare) -> None:
        if len(node.ops) > 1:
            raise _Unfit("forbidden_syntax")
        left, operator, right = node.left, node.ops[0], node.comparators[0]
        calls = [any(map(_is_call_of_subject, ast.walk(side))) for side in (left, right)]
        if calls == [True, True]:
            raise _Unfit("expected_calls_function")
        if calls == [False, False]:
            raise _Unfit("no_function")
        if calls == [False, True]:
            left, right = right, left
            if not isinstance(operator, ast.Eq):
                raise _Unfit("no_comparison")
        is_single = isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool))
        is_choice = isinstance(right, ast.List | ast.Tuple | ast.Set) and len(right.elts) > 0
        if isinstance(operator, ast.Lt | ast.LtE):
            left, right = _difference(left, right)
        elif not (
            isinstance(operator, ast.Eq)
            or (isinstance(operator, ast.Is) and is_single)
            or (isinstance(operator, ast.In) and is_choice)
        ):
            raise _Unfit("no_comparison")
        self.view(left, MAX_DEPTH)
        value(right, MAX_DEPTH, MAX_ITEMS)
        result = ast.dump(right)
        self.expected.add(result)
        if isinstance(operator, ast.Eq) and self.results.setdefault(ast.dump(left), result) != result:
            raise _Unfit("contradiction")

    def view(self, node: ast.expr, depth: int) -> None:
        if not depth:
            raise _Unfit("too_deep")
        if isinstance(node, ast.Subscript):
            value(node.slice, 2, 1)
            self.view(node.value, depth - 1)
        elif not isinstance(node, ast.Call):
            raise _Unfit(_reason(node))
        elif isinstance(node.func, ast.Name) and node.func.id not in _BUILTINS:
            self.subject(node.func.id, node)
        elif isinstance(node.func, ast.Attribute):
            if node.func.attr not in _METHODS:
                raise _Unfit("forbidden_syntax")
            _values(_arguments(node), MAX_DEPTH, 1)
            self.view(node.func.value, depth - 1)
        else:
            if not (isinstance(node.func, ast.Name) and node.func.id in _VIEWS and node.args):
                raise _Unfit("forbidden_syntax")
            more = _arguments(node)[1:]
            if more and node.func.id not in ("round", "sorted"):
                raise _Unfit("forbidden_syntax")
            _values(more, 2, 1)
            self.view(node.args[0], depth - 1)

    def subject(self, name: str, node: ast.Call) -> None:
        """Reads a call of the function under test."""
        if not name.isascii() or name.startswith("__") or len(name) > MAX_NAME_CHARS:
            raise _Unfit("forbidden_syntax")
        arguments = _arguments(node)
        _values(arguments, MAX_DEPTH, MAX_ITEMS)
        self.names.add(name)
        self.arities.add(len(arguments))


def value(node: ast.expr, depth: int, repeats: int) -> None:
    """Checks that a node is a literal value, with at most `repeats` repetitions. Raises _Unfit."""
    if not depth:
        raise _Unfit("too_deep")
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value(node.operand, depth - 1, repeats)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        _values(node.elts, depth - 1, repeats)
    elif isinstance(node, ast.Dict):
        _values([part for part in (*node.keys, *node.values) if part is not None], depth - 1, repeats)
        if None in node.keys:
            raise _Unfit("forbidden_syntax")
    elif isinstance(node, ast.BinOp):
        _arithmetic(node, depth - 1, repeats)
    elif isinstance(node, ast.Call):
        _made(node, depth - 1, repeats)
    else:
        raise _Unfit(_reason(node))


def _values(nodes: Iterable[ast.expr], depth: int, repeats: int) -> None:
    for node in nodes:
        value(node, depth, repeats)


def _made(node: ast.Call, depth: int, repeats: int) -> None:
    arguments = _arguments(node)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        arguments.append(node.func.value)
    elif not isinstance(node.func, ast.Name) or node.func.id not in _MAKERS:
        raise _Unfit(_reason(node.func))
    elif node.func.id == "range" and not all(
        (number := _number(one)) is not None and abs(number) <= repeats for one in arguments
    ):
        raise _Unfit("too_much_work")
    _values(arguments, depth, repeats)


def _arithmetic(node: ast.BinOp, depth: int, repeats: int) -> None:
    left, right = _number(node.left), _number(node.right)
    if isinstance(node.op, ast.Pow):
        if left is None or right is None or abs(left) > MAX_BASE or abs(right) > MAX_EXPONENT:
            raise _Unfit("too_much_work")
    elif isinstance(node.op, ast.Mult) and not (_is_numeric(node.left) and _is_numeric(node.right)):
        factor = left if left is not None else right
        if factor is None or abs(factor) > repeats:  # an infinite one has no int()
            raise _Unfit("too_much_work")
        repeats //= max(int(factor), 1)
    elif isinstance(node.op, ast.Mod):
        if not (_is_numeric(node.left) and _is_numeric(node.right)):  # a string's % may pad it to any length
            raise _Unfit("too_much_work")
    elif not isinstance(node.op, (ast.Mult, *_ARITHMETIC)):
        raise _Unfit("forbidden_syntax")
    _values((node.left, node.right), depth, repeats)


def _number(node: ast.expr) -> float | int | None:
    """Returns the number that a node is the literal of, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = _number(node.operand)
        return None if number is None else -number
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None


def _is_numeric(node: ast.expr) -> bool:
    """Returns whether an expression is arithmetic of numbers throughout."""
    return all(
        _number(one) is not None if isinstance(one, ast.Constant) else isinstance(one, ast.BinOp | ast.UnaryOp)
        for one in ast.walk(node)
        if isinstance(one, ast.expr)
    )


def _arguments(node: ast.Call) -> list[ast.expr]:
    if any(keyword.arg is None for keyword in node.keywords):
        raise _Unfit("forbidden_syntax")
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _difference(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Returns view and value of `abs(view - value) < number`."""
    tolerance = _number(right)
    if not (isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "abs"):
        raise _Unfit("no_comparison")
    difference = left.args[0] if len(left.args) == 1 and not left.keywords else None
    if not (isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Sub)):
        raise _Unfit("no_comparison")
    if tolerance is None or tolerance > MAX_TOLERANCE:
        raise _Unfit("no_comparison")
    return difference.left, difference.right


def _is_call_of_subject(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _BUILTINS


def _reason(node: ast.AST) -> str:
    """Returns why an expression is outside the grammar, as a word."""
    while isinstance(node, ast.Attribute):
        node = node.value
    is_unknown = isinstance(node, ast.Name) and node.id not in _BUILTINS
    return "unknown_name" if is_unknown else "forbidden_syntax"
