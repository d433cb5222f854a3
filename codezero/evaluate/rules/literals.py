"""Literals of a syntax tree as small numbers: equal values get equal numbers, so that a table can be compared with the
tests in one pass."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

_OPERATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitXor: operator.xor,
}
_MAX_OPERAND = 2**64
_MAX_TEXT = 2_000
"""Constants up to this size are worked out: `(44) - 7` is 37."""
_COLLECTIONS = {"set": "set", "frozenset": "set", "list": "seq", "tuple": "seq", "dict": "dict"}


class Literals:
    """Numbers literal expressions of trees that `solution.read` let through; hash-consed, so linear in the tree."""

    def __init__(self, by_words: bool = False) -> None:
        """Strings of the same words are equal if `by_words`, whatever the space between them."""
        self._by_words = by_words
        self._number: dict[Hashable, int] = {}
        self._value: dict[int | None, Any] = {}
        """Of the numbers of constants."""
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
        return self._intern(("str", " ".join(text.split()) if self._by_words else text))

    def numeral(self, text: str) -> int:
        """The number of the number that a text stands for. Raises ValueError if it does for none."""
        return self._constant(float(text) if "." in text else int(text))

    def sequence(self, numbers: Iterable[int]) -> int:
        """The number of a list or tuple of what has these numbers."""
        return self._intern(("seq", tuple(numbers)))

    def _intern(self, value: Hashable) -> int:
        return self._number.setdefault(value, len(self._number))

    def _find(self, node: ast.AST) -> int | None:
        if isinstance(node, ast.Constant):
            return self._constant(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._value.get(self.of(node.operand))
            return self._constant(-value) if isinstance(value, int | float | complex) else None
        if isinstance(node, ast.BinOp):
            return self._folded(node)
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

    def _folded(self, node: ast.BinOp) -> int | None:
        """The number of what two constants come to."""
        left, right = sides = [self._value.get(self.of(side)) for side in (node.left, node.right)]
        if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
            return self._constant(left + right) if len(left) + len(right) <= _MAX_TEXT else None
        operation = _OPERATIONS.get(type(node.op))
        numbers = [value for value in sides if isinstance(value, int | float | complex) and abs(value) <= _MAX_OPERAND]
        if (
            operation is None
            or len(numbers) < 2
            or (isinstance(node.op, ast.BitXor) and {int} != {*map(type, numbers)})
        ):
            return None
        return self._constant(operation(*numbers))

    def _constant(self, value: Hashable) -> int:
        if isinstance(value, str):
            number = self.text(value)
        else:
            is_number = isinstance(value, int | float | complex) and not isinstance(value, bool)
            number = self._intern(("number" if is_number else type(value).__name__, value))
        self._value.setdefault(number, value)
        return number

    def _collection(self, kind: str, items: Sequence[ast.expr | None]) -> int | None:
        numbers = [self.of(item) for item in items]
        if any(number is None for number in numbers):
            return None
        return self._intern((kind, frozenset(numbers) if kind == "set" else tuple(numbers)))
