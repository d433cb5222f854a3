"""How much work a value is: what host functions walk through is charged before they do.

The host compares, hashes and prints nested data in one call that nothing can interrupt, and data whose parts are shared
can be exponentially larger to walk than to hold.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import regex

from codezero.dryrun.budget import DepthError, Stop, meter
from codezero.dryrun.objects import Class, Instance, Raised
from codezero.dryrun.values import Annotation, Builtin, Function, Iterating, Module, Opaque, TypeValue, charged

MAX_NODES = 300_000
"""Most parts of one value, shared ones counted each time, that are compared, hashed or printed in one call."""
MAX_BITS = 1 << 16
"""Largest integer that multiplication, power and shift may make; CPython itself prints up to 14,300 bits."""


MATCH = type(regex.match("", ""))
PATTERN = type(regex.compile(""))
REGULAR = frozenset({MATCH, PATTERN})


class Record(tuple[Any, ...]):
    """An instance of an interpreted namedtuple; `kind` knows the names of its fields."""

    kind: Any

    def __repr__(self) -> str:
        return f"{self.kind.name}({', '.join(f'{n}={v!r}' for n, v in zip(self.kind.fields, self, strict=True))})"


SCALARS = frozenset({int, float, bool, complex, type(None)})
ATOMS = SCALARS | {str, bytes}
DICTS = frozenset({dict, defaultdict, OrderedDict, Counter})
_EMPTY: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
VIEWS: frozenset[type] = frozenset(type(view) for d in _EMPTY for view in (d.keys(), d.values(), d.items()))
FLAT = frozenset({list, tuple, set, frozenset, deque, Record}) | VIEWS
SIZED = FLAT | DICTS | {str, bytes, bytearray}
"""Types of builtin values that hold their items in memory."""


def measure(value: Any) -> int:
    """Charges for one walk through all of `value` and returns its number of parts. Raises Stop if there are too many,
    as in a value that contains itself."""
    kind = type(value)
    if kind in SCALARS:
        return 1
    if kind is str or kind is bytes:
        meter.work(len(value))
        return 1 + (len(value) >> 6)
    total, stack = 0, [value]
    while stack:
        part = stack.pop()
        kind = type(part)
        if kind in FLAT:
            total += 1 + len(part)
            if total > MAX_NODES:
                raise Stop("a value with too many parts")
            if not SCALARS.issuperset(map(type, part)):
                stack.extend(part)
        elif kind in DICTS:
            total += 1 + 2 * len(part)
            if total > MAX_NODES:
                raise Stop("a value with too many parts")
            stack.extend(part)
            stack.extend(part.values())
        elif kind is str or kind is bytes or kind is bytearray:
            total += 1 + (len(part) >> 6)
        elif kind in REGULAR:
            raise Stop("the text of a match or pattern")
        else:
            total += 1
            if isinstance(part, BaseException) or (kind is Instance and part.cls.error is not None):
                stack.append(part.args)
        if total > MAX_NODES:
            raise Stop("a value with too many parts")
    meter.work(total << 3)
    return total


def hashable(key: Any) -> Any:
    """`key`, charged for the hash of a tuple: the host computes it anew each time."""
    if type(key) in (tuple, Record) and not SCALARS.issuperset(map(type, key)):
        measure(key)
    return key


def feed(value: Any) -> Iterable[Any]:
    """Something that a host function may use up: `value` itself, charged by its length, or its charged iterator.

    Raises TypeError like CPython where it is not iterable.
    """
    kind = type(value)
    if kind in SIZED:
        meter.work(len(value))
        return value  # type: ignore[no-any-return]
    if kind is range:
        meter.work(length(value) << 4)
        return value  # type: ignore[no-any-return]
    return iterate(value)


def iterate(value: Any) -> Iterable[Any]:
    """What `for` goes through; whoever does charges a step an item."""
    kind = type(value)
    if kind in SIZED or kind is range:
        return value  # type: ignore[no-any-return]
    if kind is Iterating:
        return value.raw  # type: ignore[no-any-return]
    if kind is Instance:
        items: Iterable[Any] = iter(value)
        return items
    if kind is Module and value.name == "stdin":
        return charged(meter.lines)
    if kind is Opaque:
        value.refuse()
    raise TypeError(f"'{type_name(value)}' object is not iterable")


def lazy(value: Any) -> Iterator[Any]:
    """An iterator over `value` that charges a step an item, for the host's lazy functions."""
    items = iterate(value)
    return iter(items) if type(value) in (Iterating, Instance) else charged(items)


def to_list(value: Any) -> list[Any]:
    """A new list of the items."""
    if type(value) is range:
        meter.allocate(length(value) * 32)
    items = list(feed(value))
    meter.allocate(len(items) * 8)
    return items


def first_items(value: Any, count: int | None) -> list[Any]:
    """At most `count` items, or all, as unpacking takes them."""
    try:
        items = iter(iterate(value))
    except TypeError:
        raise TypeError(f"cannot unpack non-iterable {type_name(value)} object") from None
    found = list(islice(items, count))
    meter.allocate(len(found) * 8)
    return found


def length(value: range) -> int:
    """len() of a range also where it does not fit the host's index type."""
    span = value.stop - value.start
    return max(0, -(-span // value.step))


_NAMES: dict[type, str] = {
    DepthError: "RecursionError",
    Function: "function",
    Builtin: "builtin_function_or_method",
    Iterating: "generator",
    Annotation: "type",
}


def type_name(value: Any) -> str:
    """The name of a value's type, as error messages have it."""
    kind = type(value)
    if kind is Instance:
        return str(value.cls.name)
    if kind in (Class, TypeValue):
        return "type"
    if kind is Raised:
        return str(value.instance.cls.name)
    if kind is Record:
        return str(value.kind.name)
    return _NAMES.get(kind, kind.__name__)
