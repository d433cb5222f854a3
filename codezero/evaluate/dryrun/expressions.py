"""Expressions: constants, names, operators, conditions, f-strings, `:=`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun import operators
from codezero.evaluate.dryrun.budget import IN_COMPARISON, meter
from codezero.evaluate.dryrun.compiler import EXPRESSIONS, Expression, Unit
from codezero.evaluate.dryrun.integers import sized
from codezero.evaluate.dryrun.objects import COMPARISONS
from codezero.evaluate.dryrun.text import convert, format_value
from codezero.evaluate.dryrun.values import Frame

_SMALL = 1 << 62


def _constant(unit: Unit, node: ast.Constant) -> Expression:
    value = node.value
    return lambda frame: value


def _name(unit: Unit, node: ast.Name) -> Expression:
    return unit.load(node.id)


def judged(unit: Unit, run: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an operator, or a function of a value's truth, for use in tests, where methods of the solution's classes
    decide neither comparisons nor truth."""
    if not unit.is_test:
        return run

    def judge(*values: Any) -> Any:
        before, meter.judging = meter.judging, IN_COMPARISON
        try:
            return run(*values)
        finally:
            meter.judging = before

    return judge


def _binary(unit: Unit, node: ast.BinOp) -> Expression:
    left, right = unit.expression(node.left), unit.expression(node.right)
    kind = type(node.op).__name__
    run = judged(unit, operators.BINARY[kind])
    if kind == "Add":

        def plus(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            if type(a) is int and type(b) is int:
                result = a + b
                return result if -_SMALL < result < _SMALL else sized(result)
            return run(a, b)

        return plus
    if kind == "Sub":

        def minus(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            if type(a) is int and type(b) is int:
                result = a - b
                return result if -_SMALL < result < _SMALL else sized(result)
            return run(a, b)

        return minus
    return lambda frame: run(left(frame), right(frame))


_UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}


def _unary(unit: Unit, node: ast.UnaryOp) -> Expression:
    operand = unit.expression(node.operand)
    if isinstance(node.op, ast.Not):
        negate = judged(unit, operator.not_)
        return lambda frame: negate(operand(frame))
    run, number = _UNARY[type(node.op)], node.operand
    if run is operator.neg and isinstance(number, ast.Constant) and isinstance(number.value, int | float):
        value = -number.value
        return lambda frame: value
    return lambda frame: operators.unary(run, operand(frame))


def _boolean(unit: Unit, node: ast.BoolOp) -> Expression:
    values = unit.expressions(node.values)
    is_and = isinstance(node.op, ast.And)
    first, rest = values[0], values[1:]
    if len(values) == 2:
        second = values[1]
        if is_and:
            return lambda frame: first(frame) and second(frame)
        return lambda frame: first(frame) or second(frame)

    def combine(frame: Frame) -> Any:
        value = first(frame)
        for part in rest:
            if bool(value) is not is_and:
                return value
            value = part(frame)
        return value

    return combine


def _conditional(unit: Unit, node: ast.IfExp) -> Expression:
    test, body, orelse = unit.expression(node.test), unit.expression(node.body), unit.expression(node.orelse)
    return lambda frame: body(frame) if test(frame) else orelse(frame)


def _compare(unit: Unit, node: ast.Compare) -> Expression:
    left, rights = unit.expression(node.left), unit.expressions(node.comparators)
    names = [type(op).__name__ for op in node.ops]
    runs = [judged(unit, operators.COMPARE[name]) for name in names]
    if len(rights) == 1:
        right, run = rights[0], runs[0]
        if names[0] not in COMPARISONS or unit.is_test:
            return lambda frame: run(left(frame), right(frame))
        return _fast_compare(names[0], left, right, run)

    def chain(frame: Frame) -> Any:
        a = left(frame)
        result: Any = True
        for run, right in zip(runs, rights, strict=True):
            b = right(frame)
            result = run(a, b)
            if not result:
                return result
            a = b
        return result

    return chain


def _fast_compare(name: str, left: Expression, right: Expression, run: Callable[[Any, Any], Any]) -> Expression:
    """Returns a comparison that is not measured if the left side is an integer."""
    if name == "Eq":

        def equal(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            return a == b if type(a) is int else run(a, b)

        return equal
    if name == "Lt":

        def less(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            return a < b if type(a) is int else run(a, b)

        return less
    fast = getattr(operator, COMPARISONS[name])

    def compare(frame: Frame) -> Any:
        a, b = left(frame), right(frame)
        return fast(a, b) if type(a) is int else run(a, b)

    return compare


def _fstring(unit: Unit, node: ast.JoinedStr) -> Expression:
    parts = unit.expressions(node.values)

    def join(frame: Frame) -> str:
        texts = [part(frame) for part in parts]
        meter.allocate(sum(map(len, texts)))
        return "".join(texts)

    return join


def _formatted(unit: Unit, node: ast.FormattedValue) -> Expression:
    value = unit.expression(node.value)
    spec = unit.expression(node.format_spec) if node.format_spec else None
    conversion = chr(node.conversion) if node.conversion > 0 else None
    return lambda frame: format_value(convert(value(frame), conversion), spec(frame) if spec else "")


def _walrus(unit: Unit, node: ast.NamedExpr) -> Expression:
    value = unit.expression(node.value)
    store = unit.store(node.target.id)  # the scopes of comprehensions have no slot for it

    def bind(frame: Frame) -> Any:
        result = value(frame)
        store(frame, result)
        return result

    return bind


EXPRESSIONS.update(
    {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.BoolOp: _boolean,
        ast.IfExp: _conditional,
        ast.Compare: _compare,
        ast.JoinedStr: _fstring,
        ast.FormattedValue: _formatted,
        ast.NamedExpr: _walrus,
    }
)
