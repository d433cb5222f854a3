"""Programs that are one small change away from a given one: most are wrong, subtly; some are still right."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
}


def mutants(code: str, count: int, rng: random.Random) -> list[str]:
    """Returns at most `count` different programs, drawn from all single changes of operators, comparisons, integers."""
    changes = [
        (node, change) for node, at in enumerate(ast.walk(ast.parse(code))) for change in range(len(list(_changes(at))))
    ]
    found: dict[str, None] = {}
    for node, change in rng.sample(changes, len(changes)):
        tree = ast.parse(code)
        list(_changes(list(ast.walk(tree))[node]))[change]()
        found.setdefault(ast.unparse(tree))
        if len(found) == count:
            break
    return list(found)


def _changes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """The ways to change a node in place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield lambda: node.ops.__setitem__(0, COMPARISONS[type(node.ops[0])]())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield lambda: setattr(node, "op", OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.Constant) and isinstance(value := node.value, int) and not isinstance(value, bool):
        yield lambda: setattr(node, "value", value + 1)
        yield lambda: setattr(node, "value", value - 1)
