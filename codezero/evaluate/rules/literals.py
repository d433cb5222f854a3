"""Numbers the literals of a syntax tree: equal values have equal numbers, so that one pass compares a table with the
tests."""

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
"""The largest operand and the longest text of a constant expression that is computed: `(44) - 7` is 37."""
_COLLECTIONS = {"set": "set", "frozenset": "set", "list": "seq", "tuple": "seq", "dict": "dict"}


class Literals:
    """Numbers the literal expressions of trees that `solution.read` accepted, by hash consing, in linear time."""

    def __init__(self, by_words: bool = False) -> None:
        """With `by_words`, strings of the same words are equal, with any space between them."""
        self._by_words = by_words
        self._number: dict[Hashable, int] = {}
        self._value: dict[int | None, Any] = {}
        """The values of constants by number."""
        self._known: dict[int, int | None] = {}
        self._kept: list[ast.AST] = []
        """The numbered nodes, which are kept so that no other node gets their ids."""

    def of(self, node: ast.AST | None) -> int | None:
        """Returns the number of a literal's value; None for anything that is not a literal. A list equals the tuple of
        the same items, since keys are often tuples made of list arguments; True is not 1."""
        if node is None:
            return None
        if id(node) not in self._known:
            self._kept.append(node)
            self._known[id(node)] = self._find(node)
        return self._known[id(node)]

    def text(self, text: str) -> int:
        """Returns the number of a string."""
        return self._intern(("str", " ".join(text.split()) if self._by_words else text))

    def numeral(self, text: str) -> int:
        """Returns the number of the integer or float in a text. Raises ValueError: the text is neither."""
        return self._constant(float(text) if "." in text else int(text))

    def sequence(self, numbers: Iterable[int]) -> int:
        """Returns the number of a list or tuple whose items have these numbers."""
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
        """Returns the number of the result of an operation on two constants; None if it is not computed."""
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
