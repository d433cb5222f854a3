"""How much work a value is: what host functions walk through is charged before they do.

The host compares, hashes and prints nested data in one call that nothing can interrupt, and data whose parts are shared
can be exponentially larger to walk than to hold.
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
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.streams import Stream, lines_of
from codezero.evaluate.dryrun.values import Annotation, Builtin, Function, Iterating, Opaque, TypeValue, charged

MAX_NODES = 300_000
"""Most parts of one value, shared ones counted each time, that are compared, hashed or printed in one call."""
MAX_BITS = 1 << 16
"""Longest integer that functions of the library take or make; CPython itself prints up to 14,300 bits."""
SMALL = 1 << 256
"""Integers up to here cost no more than the step that comes with them."""
FEW = 64
"""Up to so many items or bytes are handled for the price of the step that comes with them."""
_MAX_COLLISIONS = 256

MATCH = type(regex.match("", ""))
PATTERN = type(regex.compile(""))
REGULAR = frozenset({MATCH, PATTERN})


class NamedTupleValue(tuple[Any, ...]):
    """An instance of an interpreted namedtuple; `kind` knows the names of its fields."""

    kind: Any

    def __repr__(self) -> str:
        return f"{self.kind.name}({', '.join(f'{n}={v!r}' for n, v in zip(self.kind.fields, self, strict=True))})"


class deque(collections.deque[Any]):
    """`collections.deque` as a class of ours, which the host frees without recursion however deep it nests."""

    __slots__ = ()
    __module__ = "collections"


class defaultdict(collections.defaultdict[Any, Any]):
    """The same for `collections.defaultdict`."""

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
"""Types of builtin values that hold their items in memory."""
HASHED = frozenset({set, frozenset}) | _KEYS
_NESTED_KEYS = frozenset({tuple, NamedTupleValue, frozenset})
_EMPTY_TEXT = getsizeof("")


def measure(value: Any) -> int:
    """Charges for one walk through all of `value` and returns its number of parts, of which text and integers have one
    for each 64 bytes. Raises Stop if there are too many, as in a value that contains itself, and if so many keys of a
    set or dict share one hash that looking each up takes quadratic time."""
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
                raise Stop("counts that are no numbers")  # compared twice over, so that nested ones double the time
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
    """How many times 64 bytes long integers among scalars take beyond what each has."""
    return max(sum(map(getsizeof, numbers)) - 32 * len(numbers), 0) >> 6


def item_bytes(value: Any) -> int:
    """Most bytes that an item of a list, text or the like takes in it."""
    kind = type(value)
    if kind is str:
        return 1 if value.isascii() else 4
    return 1 if kind in (bytes, bytearray) else 8


def measured(value: Any) -> Any:
    """The value, charged for being compared."""
    measure(value)
    return value


def checked(number: Any) -> Any:
    """`number`, charged if it is a long integer; Stop if it is too long."""
    if type(number) is int and not -SMALL < number < SMALL:
        bits = number.bit_length()
        if bits > MAX_BITS:
            raise Stop("an integer too long")
        meter.work(bits)
    return number


def bound(number: Any) -> Any:
    """`number`, the first or last of many integers. Stop if it is a long one, since each of them would be."""
    if type(number) is int and not -SMALL < number < SMALL:
        raise Stop("a count of long integers")
    return number


def hashable(key: Any) -> Any:
    """`key`, charged for its hash, which the host computes anew each time, and for being compared with an equal one."""
    kind = type(key)
    if kind is str or kind is bytes:
        if len(key) > FEW:
            meter.work(len(key))
    elif kind in _NESTED_KEYS and (len(key) > FEW or not SCALARS.issuperset(map(type, key))):
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
    if kind is Stream:
        return lines_of(value)
    if kind is Opaque:
        value.refuse()
    if kind is Class:
        return value.distinct_members()  # type: ignore[no-any-return]
    raise TypeError(f"'{type_name(value)}' object is not iterable")


def kept(value: Any) -> Iterable[Any]:
    """`iterate(value)` for what keeps it while it waits, as an iterator over an iterator does."""
    return value if type(value) is Iterating else iterate(value)


def lazy(value: Any) -> Iterator[Any]:
    """An iterator over `value` that charges a step an item, for the host's lazy functions."""
    meter.work(0)
    items = kept(value)
    return iter(items) if type(value) in (Iterating, Instance, Stream) else charged(items)


def to_list(value: Any) -> list[Any]:
    """A new list of the items."""
    kind = type(value)
    if kind is range:
        meter.allocate(length(value) * 32)
    elif kind in _PAIRS or (kind is str and not value.isascii()):
        meter.allocate(len(value) * 80)  # each is made anew
    items = list(feed(value))
    meter.allocate(len(items) * 8)
    return items


def first_items(value: Any, count: int | None) -> list[Any]:
    """At most `count` items, or all, as unpacking takes them."""
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
    """The name of a value's type, as error messages have it: an error over what is not interpreted is none."""
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
    return _NAMES.get(kind, kind.__name__)
