"""The operators; the cost of each is charged before the host runs it."""

from __future__ import annotations

import operator
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.integers import MAX_LONG, division_cost, product_cost, sized
from codezero.evaluate.dryrun.measure import (
    ATOMS,
    DICTS,
    FEW,
    HASHED,
    SCALARS,
    SIZED,
    SMALL,
    VIEWS,
    NamedTupleValue,
    checked,
    deque,
    hashable,
    item_bytes,
    iterate,
    length,
    measure,
    to_list,
    type_name,
)
from codezero.evaluate.dryrun.objects import COMPARISONS, OPERATORS, Instance
from codezero.evaluate.dryrun.streams import Stream
from codezero.evaluate.dryrun.tables import table_cost, update_dict
from codezero.evaluate.dryrun.text import percent
from codezero.evaluate.dryrun.values import Iterating

_SEQUENCES = frozenset({str, list, tuple, bytes, bytearray, array, deque, NamedTupleValue})
_SETS = frozenset({set, frozenset, *DICTS})


def add(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind in _SEQUENCES and type(b) is kind:
        meter.allocate((len(a) + len(b)) * max(item_bytes(a), item_bytes(b)))
    elif kind is Counter:
        measure(a), measure(b)
    return sized(a + b)


def mul(a: Any, b: Any) -> Any:
    if type(a) in _SEQUENCES or type(b) in _SEQUENCES:
        items, times = (a, b) if type(a) in _SEQUENCES else (b, a)
        if isinstance(times, int):
            meter.allocate(len(items) * max(times, 0) * item_bytes(items))
        return a * b
    result = a * b
    if type(result) is int and not -SMALL < result < SMALL and isinstance(a, int) and isinstance(b, int):
        product_cost(a.bit_length(), b.bit_length())
    return sized(result)


def power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0:
        bits = a.bit_length() * b
        if bits > MAX_LONG and a not in (0, 1, -1):
            raise Stop("an integer too long")
        if bits >= SMALL.bit_length():
            product_cost(bits // 2, bits // 2)
    return sized(a**b)


def power_modulo(base: Any, exp: Any, mod: Any = None) -> Any:
    """Returns pow(base, exp, mod)."""
    if mod is None:
        return power(base, exp)
    if isinstance(base, int) and isinstance(exp, int) and isinstance(mod, int):
        checked(base), checked(exp), checked(mod)
        meter.work((exp.bit_length() * mod.bit_length() ** 2) >> 6)
    return pow(base, exp, mod)


def shift_left(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a and b > MAX_LONG:
        raise Stop("an integer too long")
    return sized(a << b)


def unary(function: Callable[[Any], Any], value: Any) -> Any:
    """Returns -value, +value or ~value, by `function`; the first two also filter a Counter."""
    if type(value) is Counter:
        meter.allocate(measure(value) * 64)
    return sized(function(value))


def modulo(a: Any, b: Any) -> Any:
    if type(a) in (str, bytes):
        return percent(a, b)
    division_cost(a, b)
    return a % b


def _divided(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        division_cost(a, b)
        return function(a, b)

    return divide


def _bitwise(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wraps &, | or ^, which also join sets and dicts."""

    def combine(a: Any, b: Any) -> Any:
        _join_cost(a, b)
        return sized(function(a, b))

    return combine


def _join_cost(a: Any, b: Any) -> None:
    """Charges for joining sets, dicts, or views of dicts; a view hashes the items of any iterable."""
    if type(a) in SCALARS:
        return
    for value in (a, b):
        if type(value) in _SETS:
            table_cost(value)
        if type(value) is Counter:
            measure(value)  # its values are compared
    if type(a) in VIEWS or type(b) in VIEWS:
        for value in (a, b):
            if type(value) not in SIZED:
                raise Unsupported("a view joined with this")
            meter.allocate(measure(value) * 64)


def subtract(a: Any, b: Any) -> Any:
    _join_cost(a, b)
    return sized(a - b)


def _compare_cost(a: Any, b: Any, of_one_length: bool) -> None:
    """Charges for a comparison, which traverses both values up to the end of the shorter one. If only values
    `of_one_length` can be equal, others cost nothing."""
    kind = type(a)
    if kind in SCALARS:
        return
    if kind is type(b) and kind in SIZED and kind is not Counter and kind not in VIEWS:
        shorter = a if len(a) <= len(b) else b
        if (len(a) == len(b) or not of_one_length) and (kind not in ATOMS or len(shorter) > FEW):
            measure(shorter)
    elif type(b) not in ATOMS and kind not in ATOMS:
        measure(a)
        if kind is Counter or kind in VIEWS or type(b) in VIEWS:
            measure(b)  # traversed too, or hashed


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    function, of_one_length = getattr(operator, COMPARISONS[name]), name in ("Eq", "NotEq")

    def compare(a: Any, b: Any) -> Any:
        _compare_cost(a, b, of_one_length)
        return function(a, b)

    return compare


equal = _comparison("Eq")


def contains(container: Any, item: Any) -> bool:
    kind = type(container)
    if kind in (str, bytes, bytearray):
        search_cost(container, item)
        return item in container
    if kind in HASHED or kind in DICTS:
        return hashable(item) in container
    if kind is range:
        if type(item) not in (int, bool):
            meter.work(length(container) << 6)
        return item in container
    if kind in SIZED:
        meter.work(len(container) * measure(item))
        return item in container
    if kind is Instance and (container.data is not None or container.cls.lookup("__contains__") is not None):
        return item in container
    if kind is Class and type(item) is not Instance:
        raise Unsupported("a value in an enumeration")
    if kind not in (Iterating, Instance, Class, Stream):
        raise TypeError(f"argument of type '{type_name(container)}' is not iterable")
    return any(found is item or equal(found, item) for found in iterate(container))


PREPARED = 256
"""The length from which on a part costs no more in a search from the left, for which CPython takes linear time."""


def search_cost(text: Any, part: Any, longest: int = PREPARED) -> None:
    """Charges for a search in text, which at worst compares the whole part, if it is no longer than `longest`, at every
    position."""
    if type(part) in (str, bytes, bytearray):
        meter.work((len(text) * max(min(len(part), longest), 1)) >> 4)


def is_identical(a: Any, b: Any) -> bool:
    """Returns `a is b`. Raises Stop if that depends on which equal numbers or strings the host shares."""
    if a is b or type(a) is not type(b) or type(a) in (bool, type(None)):
        return a is b
    if type(a) in ATOMS or type(a) is tuple:
        measure(a)
        if a == b:
            raise Stop("identity of equal values")
    return False


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": add,
    "Sub": subtract,
    "Mult": mul,
    "Div": _divided(operator.truediv),
    "FloorDiv": _divided(operator.floordiv),
    "Mod": modulo,
    "Pow": power,
    "LShift": shift_left,
    "RShift": _divided(operator.rshift),
    "BitAnd": _bitwise(operator.and_),
    "BitOr": _bitwise(operator.or_),
    "BitXor": _bitwise(operator.xor),
    "MatMult": operator.matmul,
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    **{name: _comparison(name) for name in COMPARISONS},
    "In": lambda item, container: contains(container, item),
    "NotIn": lambda item, container: not contains(container, item),
    "Is": is_identical,
    "IsNot": lambda a, b: not is_identical(a, b),
}
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, f"__i{method}__") for name, method in OPERATORS.items()
}
_OF_SETS = frozenset({"Add", "Sub", "BitAnd", "BitOr", "BitXor"})
"""The operators that join or filter sets, or Counters."""


def in_place(name: str) -> Callable[[Any, Any], Any]:
    """Returns the operator of an augmented assignment, which changes mutable containers and instances in place."""
    binary = BINARY[name]

    def plain(a: Any, b: Any) -> Any:
        try:
            return binary(a, b)
        except TypeError as error:
            if str(error).startswith("unsupported operand type(s)"):
                raise TypeError(str(error).replace(": ", "=: ", 1)) from None
            raise

    def update(a: Any, b: Any) -> Any:
        kind = type(a)
        if kind is int or kind is str or kind is float:
            return plain(a, b)
        if kind is Instance:
            return _IN_PLACE[name](a, b)
        if kind is list or kind is deque:
            if name == "Add":
                a.extend(to_list(b))
                return a
            if name == "Mult" and isinstance(b, int):
                meter.allocate(len(a) * max(b, 0) * 8)
                a *= b
                return a
        elif kind is bytearray or kind is array:
            size = len(b) if type(b) in (bytes, bytearray, array) else len(a) * max(b, 0) if isinstance(b, int) else 0
            meter.allocate(size * item_bytes(a))
            if name in ("Add", "Mult"):
                return _IN_PLACE[name](a, b)
        elif name == "BitOr" and kind in DICTS and kind is not Counter:
            update_dict(a, b)
            return a
        elif kind in _SETS and name in _OF_SETS:
            _join_cost(a, b)
            return _IN_PLACE[name](a, b)
        return plain(a, b)

    return update
