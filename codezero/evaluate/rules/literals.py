"""Literals of a syntax tree as small numbers: equal values get equal numbers, so that a table can be compared with the
tests in one pass."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence

_COLLECTIONS = {"set": "set", "frozenset": "set", "list": "seq", "tuple": "seq", "dict": "dict"}


class Literals:
    """Numbers literal expressions of trees that `solution.read` let through; hash-consed, so linear in the tree."""

    def __init__(self) -> None:
        self._number: dict[Hashable, int] = {}
        self._known: dict[int, int | None] = {}
        self._kept: list[ast.AST] = []
        """Holds on to numbered nodes: their ids must not be given to others."""

    def of(self, node: ast.AST | None) -> int | None:
        """The number of a literal's value; None for anything that is not a literal. A list equals the tuple of the same
        items, since keys and arguments are often one made of the other; True is not 1."""
        if node is None:
            return None
        if id(node) not in self._known:
            self._kept.append(node)
            self._known[id(node)] = self._find(node)
        return self._known[id(node)]

    def text(self, text: str) -> int:
        """The number of a string."""
        return self._intern(("str", text))

    def _intern(self, value: Hashable) -> int:
        return self._number.setdefault(value, len(self._number))

    def _find(self, node: ast.AST) -> int | None:
        if isinstance(node, ast.Constant):
            return self._constant(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            return self._constant(-value) if isinstance(value, int | float | complex) else None
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return self._collection("set" if isinstance(node, ast.Set) else "seq", node.elts)
        if isinstance(node, ast.Dict):
            return self._collection("dict", [*node.keys, *node.values])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords and len(node.args) < 2:
            kind = _COLLECTIONS.get(node.func.id, "")
            if kind and not node.args:
                return self._collection(kind, [])
            if kind in ("set", "seq") and isinstance(node.args[0], ast.List | ast.Tuple | ast.Set):
                return self._collection(kind, node.args[0].elts)
        return None

    def _constant(self, value: Hashable) -> int:
        is_number = isinstance(value, int | float | complex) and not isinstance(value, bool)
        return self._intern(("number" if is_number else type(value).__name__, value))

    def _collection(self, kind: str, items: Sequence[ast.expr | None]) -> int | None:
        numbers = [self.of(item) for item in items]
        if any(number is None for number in numbers):
            return None
        return self._intern((kind, frozenset(numbers) if kind == "set" else tuple(numbers)))
