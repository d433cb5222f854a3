"""Displays of containers, and expressions that read attributes, items and slices."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import meter
from codezero.evaluate.dryrun.compiler import EXPRESSIONS, Expression, Unit
from codezero.evaluate.dryrun.items import get_item
from codezero.evaluate.dryrun.measure import SCALARS, hashable, to_list
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.tables import folded_set, update_dict
from codezero.evaluate.dryrun.values import Frame, Opaque


def items_of(unit: Unit, nodes: list[ast.expr]) -> Callable[[Frame], list[Any]]:
    """Returns a closure that makes a list of the values of a display or of positional arguments, starred ones
    unpacked."""
    if not any(isinstance(node, ast.Starred) for node in nodes):
        values = unit.expressions(nodes)
        if len(values) == 1:
            only = values[0]
            return lambda frame: [only(frame)]
        if len(values) == 2:
            first, second = values
            return lambda frame: [first(frame), second(frame)]
        return lambda frame: [value(frame) for value in values]
    parts = [
        (True, unit.expression(node.value)) if isinstance(node, ast.Starred) else (False, unit.expression(node))
        for node in nodes
    ]

    def spread(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for starred, value in parts:
            if starred:
                result.extend(to_list(value(frame)))
            else:
                result.append(value(frame))
        return result

    return spread


def _charged(items: Callable[[Frame], list[Any]], count: int, shift: int = 3) -> Callable[[Frame], list[Any]]:
    """Wraps a display to charge a step, and one more for each 2 ** shift parts."""
    cost = 1 + (count >> shift)

    def display(frame: Frame) -> list[Any]:
        meter.left -= cost
        if meter.left < 0:
            meter.refill()
        return items(frame)

    return display


def _list(unit: Unit, node: ast.List) -> Expression:
    return _charged(items_of(unit, node.elts), len(node.elts))


def _tuple(unit: Unit, node: ast.Tuple) -> Expression:
    items = _charged(items_of(unit, node.elts), len(node.elts))
    return lambda frame: tuple(items(frame))


_FOLDED = 3
"""Least items of a set display that CPython compiles to one constant."""


def _is_constant(node: ast.expr) -> bool:
    """Returns True for an expression that CPython evaluates when it compiles the program."""
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left) and _is_constant(node.right)
    if isinstance(node, ast.Tuple):
        return all(map(_is_constant, node.elts))
    return isinstance(node, ast.Constant)


def _set(unit: Unit, node: ast.Set) -> Expression:
    items = _charged(items_of(unit, node.elts), len(node.elts), shift=1)
    if len(node.elts) >= _FOLDED and all(map(_is_constant, node.elts)):

        def copied(frame: Frame) -> set[Any]:
            result: set[Any] = set()
            result.update(folded_set([hashable(item) for item in items(frame)]))
            return result

        return copied
    return lambda frame: {hashable(item) for item in items(frame)}


def source_of(unit: Unit, node: ast.expr) -> Expression:
    """Translates the iterable of a loop, where CPython takes the constant of a set display without copying it."""
    if not isinstance(node, ast.Set) or not all(map(_is_constant, node.elts)):
        return unit.expression(node)
    items = _charged(items_of(unit, node.elts), len(node.elts), shift=1)
    return lambda frame: folded_set([hashable(item) for item in items(frame)])


def _dict(unit: Unit, node: ast.Dict) -> Expression:
    pairs = [
        (None if key is None else unit.expression(key), unit.expression(value))
        for key, value in zip(node.keys, node.values, strict=True)
    ]

    size = len(pairs) << 5

    def make(frame: Frame) -> dict[Any, Any]:
        meter.work(size)
        result: dict[Any, Any] = {}
        for key, value in pairs:
            if key is None:
                update_dict(result, value(frame))
            else:
                name = hashable(key(frame))
                result[name] = value(frame)
        return result

    return make


def _attribute(unit: Unit, node: ast.Attribute) -> Expression:
    value, name = unit.expression(node.value), unit.scope.mangled(node.attr)
    return lambda frame: get_attribute(value(frame), name)


def _subscript(unit: Unit, node: ast.Subscript) -> Expression:
    value, index = unit.expression(node.value), unit.expression(node.slice)

    def item(frame: Frame) -> Any:
        container = value(frame)
        key = index(frame)
        if type(key) is int and (type(container) is list or type(container) is str):
            return container[key]
        return get_item(container, key)

    return item


_BOUND = Opaque("a slice of anything but numbers")
_NO_BOUND = Opaque("a slice of anything but numbers", has_index=False)
"""These replace a slice's bound that is neither a number nor None; the first may have an index. An instance could get a
slice with another slice as bound, and the host frees a chain of slices by recursion."""


def _slice(unit: Unit, node: ast.Slice) -> Expression:
    parts = [unit.expression(part) if part else None for part in (node.lower, node.upper, node.step)]
    lower, upper, step = parts

    def bound(part: Expression | None, frame: Frame) -> Any:
        value = part(frame) if part else None
        if type(value) in SCALARS:
            return value
        return _BOUND if type(value) in (Instance, Opaque) else _NO_BOUND

    def make(frame: Frame) -> slice:
        return slice(bound(lower, frame), bound(upper, frame), bound(step, frame))

    return make


EXPRESSIONS.update(
    {
        ast.List: _list,
        ast.Tuple: _tuple,
        ast.Set: _set,
        ast.Dict: _dict,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
    }
)
