"""Finds a program's tables of literals: dictionaries, pairs, parallel lists, and conditions on equality."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import product

from codezero.evaluate.rules.literals import Literals

Row = tuple[int, int]
"""(key, value) as numbers of `Literals`."""

MAX_SIDE = 100
"""The most different keys, and values, of one mapping that are read, since each key is paired with each value."""
MAX_PARALLEL = 16
"""The most list and tuple displays that are paired as parallel lists."""

_Side = Iterable[ast.expr | None]


def tables(nodes: Sequence[ast.AST], literals: Literals) -> Iterator[tuple[int, list[Row], bool]]:
    """Yields (line, rows, True if it has conditions) of each table, then of all conditions, then of everything."""
    everything: list[Row] = []
    chain: list[Row] = []
    first = first_of_chain = 0
    for node in nodes:
        rows = [row for keys, values in _sides(node) for row in _numbers(keys, values, literals)]
        if not rows:
            continue
        line = getattr(node.pattern if isinstance(node, ast.match_case) else node, "lineno", 0)
        first = first or line
        everything += rows
        if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set | ast.Call):
            yield line, rows, False
        else:
            first_of_chain = first_of_chain or line
            chain += rows
    for line, rows in _parallel(nodes, literals):
        yield line, rows, False
    yield first_of_chain, chain, True
    yield first, everything, True


def branches(node: ast.AST) -> list[ast.expr]:
    """Returns the two values of a conditional expression; nothing for other nodes."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def keys_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yields the expressions that this node itself compares with, has as keys, or lists."""
    yield from _compared(node)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield from node.elts
    yield from (key for keys, _ in _sides(node) for key in keys if key is not None)


def _numbers(keys: _Side, values: _Side, literals: Literals) -> list[Row]:
    """Returns rows of each key with each value, without those that are not literals. Of many, those that were numbered
    first are kept, which are the tests' ones."""
    first, second = (
        nsmallest(MAX_SIDE, {n for one in side if (n := literals.of(one)) is not None}) for side in (keys, values)
    )
    return list(product(first, second))


def _sides(node: ast.AST) -> Iterator[tuple[_Side, _Side]]:
    """Yields (keys, values) of each mapping that this node itself makes."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield [key], [value.body if isinstance(value, ast.Lambda) else value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        yield from (([ast.Constant(value=keyword.arg)], [keyword.value]) for keyword in node.keywords)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        pairs = (e.elts for e in node.elts if isinstance(e, ast.List | ast.Tuple) and len(e.elts) == 2)
        yield from (([key], [value]) for key, value in pairs)
    elif isinstance(node, ast.If):
        yield list(_compared(node.test)), _results(node.body)
    elif isinstance(node, ast.IfExp):
        yield list(_compared(node.test)), [node.body]
    elif isinstance(node, ast.match_case):
        yield list(_compared(node)), _results(node.body)
    elif isinstance(node, ast.BoolOp):
        yield [key for part in node.values for key in _compared(part)], node.values
    elif isinstance(node, ast.BinOp):
        yield [key for part in (node.left, node.right) for key in _compared(part)], [node.left, node.right]
    elif isinstance(node, ast.Assign):
        subscripts = [target for target in node.targets if isinstance(target, ast.Subscript)]
        yield from (([target.slice], [node.value]) for target in subscripts)


def _compared(test: ast.AST) -> Iterator[ast.expr]:
    """Yields the expressions that a condition or `case` compares for equality, also in parts joined by `and` and
    `or`."""
    stack = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.BoolOp):
            stack.extend(node.values)
        elif isinstance(node, ast.match_case):
            yield from _matched(node.pattern)
        elif isinstance(node, ast.Compare):
            for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                if isinstance(op, ast.Eq | ast.Is):
                    yield from (left, right)
                elif isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple | ast.Set):
                    yield from right.elts


def _results(body: list[ast.stmt]) -> list[ast.expr | None]:
    """Returns the values that statements of a block return, yield, assign or pass to a function such as print."""
    found: list[ast.expr | None] = []
    for statement in body:
        if isinstance(statement, ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign):
            found.append(statement.value)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            found.append(statement.value.value)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            found.extend(statement.value.args)
    return found


def _matched(pattern: ast.pattern) -> Iterator[ast.expr]:
    """Yields the values that a pattern matches: a sequence of values as a whole, other patterns by their parts."""
    value = _literal(pattern)
    if value is not None:
        yield value
        return
    for part in ast.iter_child_nodes(pattern):
        if isinstance(part, ast.pattern):
            yield from _matched(part)


def _literal(pattern: ast.pattern) -> ast.expr | None:
    """Returns the value of a pattern that matches only one; None for other patterns."""
    if isinstance(pattern, ast.MatchValue):
        return pattern.value
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Constant(value=pattern.value)
    if isinstance(pattern, ast.MatchSequence):
        values = [value for part in pattern.patterns if (value := _literal(part)) is not None]
        return ast.Tuple(elts=values, ctx=ast.Load()) if len(values) == len(pattern.patterns) else None
    return None


def _parallel(nodes: Sequence[ast.AST], literals: Literals) -> Iterator[tuple[int, list[Row]]]:
    """Yields (line, rows) of each pair of displays of one length, both on their own or both in one display, which `zip`
    or a common index may join. A list is not parallel to a row of another list, else matrices would be tables."""
    displays = [node for node in nodes if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1]
    inside = {id(element): display for display in displays for element in display.elts}
    flat = [d for d in displays if all(literals.of(element) is not None for element in d.elts)][:MAX_PARALLEL]
    for keys in flat:
        for values in flat:
            alike = inside.get(id(keys)) is inside.get(id(values))
            if keys is not values and alike and len(keys.elts) == len(values.elts):
                rows = [
                    row for k, v in zip(keys.elts, values.elts, strict=True) for row in _numbers([k], [v], literals)
                ]
                yield keys.lineno, rows
