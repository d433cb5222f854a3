"""The operators, with the cost of each charged before the host does it."""

from __future__ import annotations

import operator
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from codezero.dryrun.budget import Stop, Unsupported, meter
from codezero.dryrun.measure import (
    ATOMS,
    DICTS,
    MAX_BITS,
    SIZED,
    VIEWS,
    Record,
    feed,
    hashable,
    iterate,
    length,
    measure,
    to_list,
    type_name,
)
from codezero.dryrun.objects import Instance
from codezero.dryrun.text import percent
from codezero.dryrun.values import Iterating

_SMALL = 1 << 256
_SEQUENCES = frozenset({str, list, tuple, bytes, bytearray, deque, Record})
_SETS = frozenset({set, frozenset, *DICTS})


def checked(number: Any) -> Any:
    """`number`, charged if it is a long integer; Stop if it is too long."""
    if type(number) is int and not -_SMALL < number < _SMALL:
        bits = number.bit_length()
        if bits > MAX_BITS:
            raise Stop("an integer too long")
        meter.work(bits)
    return number


def add(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind in _SEQUENCES and type(b) is kind:
        meter.allocate((len(a) + len(b)) * (1 if kind is str or kind is bytes else 8))
    elif kind is Counter:
        measure(a), measure(b)
    return checked(a + b)


def mul(a: Any, b: Any) -> Any:
    if type(a) in _SEQUENCES or type(b) in _SEQUENCES:
        items, times = (a, b) if type(a) in _SEQUENCES else (b, a)
        if isinstance(times, int):
            meter.allocate(len(items) * max(times, 0) * (1 if type(items) in (str, bytes) else 8))
        return a * b
    return checked(a * b)


def power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > MAX_BITS and a not in (0, 1, -1):
        raise Stop("an integer too long")
    return checked(a**b)


def power_modulo(a: Any, b: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return power(a, b)
    if isinstance(a, int) and isinstance(b, int) and isinstance(modulus, int):
        checked(a), checked(b), checked(modulus)
        meter.work((b.bit_length() * modulus.bit_length() ** 2) >> 6)
    return pow(a, b, modulus)


def shift_left(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a and b > MAX_BITS:
        raise Stop("an integer too long")
    return checked(a << b)


def modulo(a: Any, b: Any) -> Any:
    return percent(a, b) if type(a) in (str, bytes) else checked(a % b)


def _divided(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        return checked(function(checked(a), checked(b)))

    return divide


def _bitwise(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """&, | and ^ also join sets and dicts."""

    def combine(a: Any, b: Any) -> Any:
        _measure_views(a, b)
        if type(a) in _SETS:
            meter.allocate(len(a) * 64)
            if type(b) in _SETS:
                meter.allocate(len(b) * 64)
        return checked(function(a, b))

    return combine


def _measure_views(a: Any, b: Any) -> None:
    """Views of dicts join with any iterable, whose items are hashed."""
    if type(a) in VIEWS or type(b) in VIEWS:
        meter.allocate(measure(a) * 64)
        if type(b) in SIZED:
            meter.allocate(measure(b) * 64)
        elif type(b) is not Instance:
            raise Unsupported("a view joined with this")


def subtract(a: Any, b: Any) -> Any:
    _measure_views(a, b)
    if type(a) in _SETS:
        meter.allocate(len(a) * 64)
    return checked(a - b)


def equal(a: Any, b: Any) -> Any:
    if type(a) not in ATOMS and type(b) not in ATOMS:
        _measure_smaller(a, b)
    return a == b


def unequal(a: Any, b: Any) -> Any:
    if type(a) not in ATOMS and type(b) not in ATOMS:
        _measure_smaller(a, b)
    return a != b


def _measure_smaller(a: Any, b: Any) -> None:
    """Comparing walks through both at once and ends where they differ in length, mostly before that."""
    if type(a) is type(b) and type(a) in SIZED and len(a) != len(b):
        return
    measure(a)


def _ordered(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(a: Any, b: Any) -> Any:
        if type(a) not in ATOMS and type(b) not in ATOMS:
            measure(a)
        return function(a, b)

    return compare


def contains(container: Any, item: Any) -> bool:
    kind = type(container)
    if kind is str or kind is bytes:
        search_cost(container, item)
        return item in container
    if kind in (set, frozenset) or kind in DICTS:
        return hashable(item) in container
    if kind is range:
        if type(item) not in (int, bool):
            meter.work(length(container) << 6)
        return item in container
    if kind in SIZED:
        meter.work(len(container) * measure(item))
        return item in container
    if kind is Instance:
        return item in container
    return item in _iterable(container)


def _iterable(container: Any) -> Any:
    if type(container) is not Iterating:
        raise TypeError(f"argument of type '{type_name(container)}' is not iterable")
    return iterate(container)


def not_contains(container: Any, item: Any) -> bool:
    return not contains(container, item)


def search_cost(text: Any, part: Any) -> None:
    """Charges a search in text: at worst every position is tried to its end."""
    if type(part) in (str, bytes):
        meter.work((len(text) * max(len(part), 1)) >> 4)


def same(a: Any, b: Any) -> bool:
    """`a is b`; Stop where that depends on which equal numbers or strings the host happens to share."""
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
    "Eq": equal,
    "NotEq": unequal,
    "Lt": _ordered(operator.lt),
    "LtE": _ordered(operator.le),
    "Gt": _ordered(operator.gt),
    "GtE": _ordered(operator.ge),
    "In": lambda item, container: contains(container, item),
    "NotIn": lambda item, container: not contains(container, item),
    "Is": same,
    "IsNot": lambda a, b: not same(a, b),
}
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Sub": operator.isub,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
}
_IN_PLACE_DUNDER = {"Add": operator.iadd, "Mult": operator.imul, "Div": operator.itruediv, "Mod": operator.imod,
                    "FloorDiv": operator.ifloordiv, "Pow": operator.ipow, "LShift": operator.ilshift,
                    "RShift": operator.irshift, "MatMult": operator.imatmul}  # fmt: skip


def in_place(name: str) -> Callable[[Any, Any], Any]:
    """The operator of an augmented assignment: containers and objects that can, change themselves."""
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
            return (_IN_PLACE.get(name) or _IN_PLACE_DUNDER[name])(a, b)
        if kind is list or kind is deque:
            if name == "Add":
                a.extend(to_list(b))
                return a
            if name == "Mult" and isinstance(b, int):
                meter.allocate(len(a) * max(b, 0) * 8)
                a *= b
                return a
        elif name in _IN_PLACE and kind in _SETS:
            meter.allocate(len(a))
            return _IN_PLACE[name](a, feed(b) if type(b) in SIZED else b)
        elif kind is Counter and name == "Add":
            measure(b)
            a += b
            return a
        return plain(a, b)

    return update
