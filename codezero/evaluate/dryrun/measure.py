"""The cost of values, charged before host functions traverse them.

The host compares, hashes and prints nested data in one call that cannot be interrupted, and data with shared parts can
take exponentially longer to traverse than its size in memory suggests.
"""

from __future__ import annotations

import collections
from array import array
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from sys import getsizeof
from typing import Any

import regex

from codezero.evaluate.dryrun.budget import DepthError, Stop, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.errors import Raised
from codezero.evaluate.dryrun.objects import Instance, as_index
from codezero.evaluate.dryrun.order import in_order
from codezero.evaluate.dryrun.streams import Stream, lines_of
from codezero.evaluate.dryrun.type_objects import Annotation, TypeValue, Union
from codezero.evaluate.dryrun.values import Builtin, Function, Iterating, Opaque, charged

MAX_NODES = 300_000
"""Most parts of a value that is compared, hashed or printed in one call; shared parts count each time."""
MAX_BITS = 1 << 16
"""Bits of the longest integer that library functions take or make; CPython prints integers up to 14,300 bits."""
SMALL = 1 << 256
"""Integers below this magnitude cost nothing beyond the step of their operation."""
FEW = 64
"""Most items or bytes that cost nothing beyond the step of their operation."""
_MAX_COLLISIONS = 256

MATCH = type(regex.match("", ""))
PATTERN = type(regex.compile(""))
REGULAR = frozenset({MATCH, PATTERN})


class NamedTupleValue(tuple[Any, ...]):
    """An instance of an interpreted named tuple; `kind` is its NamedTuple type, which has the names of the fields."""

    kind: Any

    def __repr__(self) -> str:
        meter.allocate(sum(map(getsizeof, (self.kind.name, *self.kind.fields))))
        return f"{self.kind.name}({', '.join(f'{n}={v!r}' for n, v in zip(self.kind.fields, self, strict=True))})"


class deque(collections.deque[Any]):
    """A subclass of `collections.deque`, which CPython frees without recursion at any depth of nesting."""

    __slots__ = ()
    __module__ = "collections"


class defaultdict(collections.defaultdict[Any, Any]):
    """A subclass of `collections.defaultdict`, for the same reason as `deque`."""

    __slots__ = ()
    __module__ = "collections"


SCALARS = frozenset({int, float, bool, complex, type(None)})
ATOMS = SCALARS | {str, bytes}
DICTS = frozenset({dict, defaultdict, OrderedDict, Counter})
_EMPTY: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
_KEYS = frozenset(type(d.keys()) for d in _EMPTY)
_PAIRS = frozenset(type(d.items()) for d in _EMPTY)
VIEWS: frozenset[type] = _KEYS | _PAIRS | {type(d.values()) for d in _EMPTY}
FLAT = frozenset({list, tuple, set, frozenset, deque, NamedTupleValue}) | VIEWS
SIZED = FLAT | DICTS | {str, bytes, bytearray, array}
"""Types of builtin containers that hold their items in memory."""
HASHED = frozenset({set, frozenset}) | _KEYS
_NESTED_KEYS = frozenset({tuple, NamedTupleValue, frozenset})
_EMPTY_TEXT = getsizeof("")


def measure(value: Any) -> int:
    """Charges for one traversal of `value` and returns its number of parts; text and integers count one more for each
    64 bytes. Raises Stop if there are too many, as in a value that contains itself, or if so many keys of a set or dict
    share a hash that looking them all up takes quadratic time."""
    kind = type(value)
    if kind in ATOMS:
        size = getsizeof(value)
        if kind not in SCALARS:
            meter.work(size - _EMPTY_TEXT)
        return 1 + (size >> 6)
    total, stack, tables = 0, [value], []
    while stack:
        part = stack.pop()
        kind = type(part)
        if kind in ATOMS:
            total += 1 + (getsizeof(part) >> 6)
        elif kind in FLAT:
            total += 1 + len(part)
            if total > MAX_NODES:
                raise Stop("a value with too many parts")
            if not SCALARS.issuperset(map(type, part)):
                stack.extend(part)
            elif part:
                total += long_parts(part)
            if len(part) > _MAX_COLLISIONS and kind in HASHED:
                tables.append(part)
        elif kind in DICTS:
            total += 1 + 2 * len(part)
            if total > MAX_NODES:
                raise Stop("a value with too many parts")
            stack.extend(part)
            stack.extend(part.values())
            if kind is Counter and not ATOMS.issuperset(map(type, part.values())):
                raise Stop("counts that are not numbers")  # compared twice, so each level of nesting doubles the time
            if len(part) > _MAX_COLLISIONS:
                tables.append(part)
        elif kind is slice:
            total += 1
            stack.extend((part.start, part.stop, part.step))
        elif kind is array:
            total += 1 + len(part)
        elif kind is bytearray:
            total += 1 + (len(part) >> 6)
        elif kind in REGULAR:
            raise Stop("the text of a match or pattern")
        else:
            total += 1
            if isinstance(part, BaseException) or (kind is Instance and part.cls.error is not None):
                stack.append(part.args)
            if kind is Instance and part.data is not None:
                stack.append(part.data)
        if total > MAX_NODES:
            raise Stop("a value with too many parts")
    meter.work(total << 3)
    for table in tables:
        hashes = [hash(key) for key in table if type(key) is not Instance]
        if len(hashes) - len(set(hashes)) > _MAX_COLLISIONS:
            raise Stop("too many keys with one hash")
    return total


def long_parts(numbers: Collection[Any]) -> int:
    """Returns the units of 64 bytes that scalars take beyond 32 bytes each, as long integers do."""
    return max(sum(map(getsizeof, numbers)) - 32 * len(numbers), 0) >> 6


def item_bytes(value: Any) -> int:
    """Returns the most bytes that one item takes in a list, text or the like."""
    kind = type(value)
    if kind is str:
        return 1 if value.isascii() else 4
    return 1 if kind in (bytes, bytearray) else 8


def measured(value: Any) -> Any:
    """Charges for comparing `value`, and returns it."""
    measure(value)
    return value


def checked(number: Any) -> Any:
    """Charges for `number` if it is a long integer, and returns it. Raises Stop if it is too long."""
    if type(number) is int and not -SMALL < number < SMALL:
        bits = number.bit_length()
        if bits > MAX_BITS:
            raise Stop("an integer too long")
        meter.work(bits)
    return number


def bound(number: Any) -> Any:
    """Returns `number`, a bound of a range of integers. Raises Stop if it is long, since all of them may be."""
    number = as_index(number)
    if type(number) is int and not -SMALL < number < SMALL:
        raise Stop("a count of long integers")
    return number


def hashable(key: Any) -> Any:
    """Charges for hashing `key`, which the host does each time, and for comparing it with an equal key; returns it."""
    kind = type(key)
    if kind is str or kind is bytes:
        if len(key) > FEW:
            meter.work(len(key))
    elif kind in _NESTED_KEYS and (len(key) > FEW or not SCALARS.issuperset(map(type, key))):
        measure(key)
    return key


def feed(value: Any) -> Iterable[Any]:
    """Returns an iterable that a host function may exhaust: `value`, charged by its length, or an iterator that charges
    each item. Raises TypeError like CPython if `value` is not iterable."""
    kind = type(value)
    if kind in SIZED:
        meter.work(len(value))
        return value if kind is not set and kind is not frozenset else in_order(value)
    if kind is range:
        meter.work(length(value) << 4)
        return value  # type: ignore[no-any-return]
    return iterate(value)


def iterate(value: Any) -> Iterable[Any]:
    """Returns the iterable of a `for` over `value`; the caller charges a step per item. Raises TypeError like CPython
    if `value` is not iterable."""
    kind = type(value)
    if kind is set or kind is frozenset:
        return in_order(value)
    if kind in SIZED or kind is range:
        return value  # type: ignore[no-any-return]
    if kind is Iterating:
        return value.raw  # type: ignore[no-any-return]
    if kind is Instance:
        items: Iterable[Any] = iter(value)
        return items
    if kind is Stream:
        return lines_of(value)
    if kind is Opaque:
        value.refuse()
    if kind is Class:
        return value.distinct_members()  # type: ignore[no-any-return]
    raise TypeError(f"'{type_name(value)}' object is not iterable")


def kept(value: Any) -> Iterable[Any]:
    """Returns `iterate(value)` for lazy functions, which keep it; an Iterating stays one, so that nesting is
    counted."""
    return value if type(value) is Iterating else iterate(value)


def lazy(value: Any) -> Iterator[Any]:
    """Returns an iterator over `value` that charges a step per item, for lazy functions of the host."""
    meter.work(0)
    items = kept(value)
    return iter(items) if type(value) in (Iterating, Instance, Stream) else charged(items)


def to_list(value: Any) -> list[Any]:
    """Returns a new list of the items, charged."""
    kind = type(value)
    if kind is range:
        meter.allocate(length(value) * 32)
    elif kind in _PAIRS or (kind is str and not value.isascii()):
        meter.allocate(len(value) * 80)  # each item is a new object
    items = list(feed(value))
    meter.allocate(len(items) * 8)
    return items


def first_items(value: Any, count: int | None) -> list[Any]:
    """Returns the first `count` items, or all if None. Raises TypeError with the text of unpacking if there are none to
    iterate over."""
    if count is None and (type(value) in SIZED or type(value) is range):
        return to_list(value)
    try:
        items = iter(iterate(value))
    except TypeError:
        raise TypeError(f"cannot unpack non-iterable {type_name(value)} object") from None
    found = list(islice(items, count))
    meter.allocate(len(found) * 8)
    return found


def length(value: range) -> int:
    """Returns the length of a range, also where it does not fit the host's index type."""
    span = value.stop - value.start
    return max(0, -(-span // value.step))


_NAMES: dict[type, str] = {
    DepthError: "RecursionError",
    Function: "function",
    Builtin: "builtin_function_or_method",
    Iterating: "generator",
    Annotation: "type",
    Union: "UnionType",
}


def type_name(value: Any) -> str:
    """Returns the name of a value's type for error messages. Raises Unsupported for an Opaque."""
    kind = type(value)
    if kind is Opaque:
        value.refuse()
    if kind is Instance:
        return str(value.cls.name)
    if kind in (Class, TypeValue):
        return "type"
    if kind is Raised:
        return str(value.instance.cls.name)
    if kind is NamedTupleValue:
        return str(value.kind.name)
    if kind is Iterating and not value.is_generator:
        return "iterator"  # of a type that is not known, such as `map`
    return _NAMES.get(kind, kind.__name__)
