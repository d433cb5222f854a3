"""Takes apart tests like `assert f(literals) == literal`, so that other inputs can be put into them."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from codezero.evaluate.rules.solution import depth_of
from codezero.tasks.testcases import UNPARSEABLE, parse_source

_INPUTS, _ASKED, _RESULT = "fresh_inputs", "fresh_asked", "fresh_result"
"""Placeholder names for the inputs, the checked expression and its result."""
MAX_CHARS, _MAX_DEPTH, _MAX_ARGUMENTS = 2_000, 40, 8
"""Limits of characters, nesting and arguments; tests beyond them have no form."""
NEAR = """
def fresh_near(one, other):
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        same_kind = isinstance(one, list) == isinstance(other, list) and len(one) == len(other)
        return same_kind and all(fresh_near(a, b) for a, b in zip(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(fresh_near(one[key], other[key]) for key in one)
    if isinstance(one, (float, complex)) or isinstance(other, (float, complex)):
        return one == other or abs(one - other) <= 1e-9 * min(abs(one), abs(other))
    return one == other
"""
"""The setup of tests that compare floats with a tolerance. A reference's last digit depends on how it computes, and
right solutions may differ in it."""


@dataclass(frozen=True, slots=True)
class Form:
    """A test with placeholders for inputs and result. Tests that differ only in these have equal forms."""

    source: str
    """Source of the expression whose value the test checks."""
    test_source: str
    """Source of the test; empty if it only checks that the expression is true or false."""
    compares: bool
    """True if the test compares by `==`; false for tests of truth or with a tolerance of their own."""
    num_inputs: int

    def asked(self, inputs: tuple[Any, ...]) -> str:
        """Returns the source of the expression with these inputs."""
        return self.source.replace(_INPUTS, ", ".join(map(repr, inputs)))

    def test(self, asked: str, result: Any) -> str:
        """Returns the test that an expression has this result."""
        if not self.test_source:
            return f"assert {'' if result else 'not '}({asked})"
        if self.compares and _has_fraction(result):
            return f"assert fresh_near({asked}, {result!r})"
        return self.test_source.replace(_ASKED, asked).replace(_RESULT, repr(result))


def _has_fraction(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_fraction, value.values()))
    return isinstance(value, float | complex) or (isinstance(value, list | tuple) and any(map(_has_fraction, value)))


def form_of(statement: str, functions: Collection[str]) -> tuple[Form, tuple[Any, ...]] | None:
    """Returns the form and the inputs of a test that calls one of the functions once with literals, or a method of the
    result of its call without arguments, as `Solution().f(1)`; None for any other test."""
    tree = parse_source(statement) if len(statement) <= MAX_CHARS else None
    if tree is None or depth_of(tree) > _MAX_DEPTH or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Assert):
        return None
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in functions]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.func in names]
    if len(names) != 1 or len(calls) != 1:
        return None
    (call,) = calls
    if not call.args and not call.keywords:  # Solution().f(...)
        outer = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        call = next((one for one in outer if isinstance(one.func, ast.Attribute) and one.func.value is call), call)
    if call.keywords or not 1 <= len(call.args) <= _MAX_ARGUMENTS:
        return None
    try:
        inputs = tuple(ast.literal_eval(argument) for argument in call.args)
        call.args = [ast.Name(_INPUTS, ast.Load())]
        return Form(*_parts(tree.body[0], call), len(inputs)), inputs
    except (*UNPARSEABLE, TypeError):
        return None


def _parts(case: ast.Assert, call: ast.Call) -> tuple[str, str, bool]:
    """Returns the fields of the test's `Form` but the last. It changes the test's syntax tree."""
    test, result, place = case.test, ast.Name(_RESULT, ast.Load()), ast.Name(_ASKED, ast.Load())
    case.msg = None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        asked = _asked_side(test.left, test.comparators[0], call)
        test.left, test.comparators = place, [result]
        return ast.unparse(asked), ast.unparse(case), True
    if isinstance(test, ast.Call) and ast.unparse(test.func).endswith("isclose") and len(test.args) == 2:
        asked = _asked_side(test.args[0], test.args[1], call)
        test.args = [place, result]
        return ast.unparse(asked), ast.unparse(case), False
    difference = _difference(test)
    if difference is not None:
        asked = _asked_side(difference.left, difference.right, call)
        difference.left, difference.right = place, result
        return ast.unparse(asked), ast.unparse(case), False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return ast.unparse(test), "", False


def _asked_side(left: ast.expr, right: ast.expr, call: ast.Call) -> ast.expr:
    return left if call in ast.walk(left) else right


def _difference(test: ast.expr) -> ast.BinOp | None:
    """Returns `a - b` of a test `abs(a - b) < bound`; None for any other."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Lt | ast.LtE):
        return None
    bounded = test.left
    if not isinstance(bounded, ast.Call) or ast.unparse(bounded.func) != "abs" or len(bounded.args) != 1:
        return None
    inner = bounded.args[0]
    return inner if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) else None
