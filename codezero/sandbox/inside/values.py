"""Encodes values that pass between the solution's process and the test runner: plain data and built-in types become
JSON.

An instance of a subclass of a built-in type arrives as that type, so that none of the solution's methods runs where the
tests are; a named tuple arrives as one with the same fields. Any other object stays where it is, and is sent as a
number that stands for it.
"""

from __future__ import annotations

import builtins
import collections
import functools
import importlib
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any

MAX_ITEMS = 200_000
"""The most items taken from an iterator."""

_VIEWS: tuple[tuple[Any, str], ...] = ((type({}.keys()), "li"), (type({}.values()), "vi"), (type({}.items()), "wi"))
_DICTS: tuple[tuple[Any, str], ...] = ((collections.Counter, "n"), (collections.OrderedDict, "o"), (dict, "d"))
"""Kinds of dictionaries, each with its tag. The order of an OrderedDict is not that of the `dict` in it."""
_COLLECTIONS: tuple[tuple[Any, str], ...] = (
    (list, "l"),
    (tuple, "t"),
    (set, "s"),
    (frozenset, "h"),
    (collections.deque, "k"),
)
_FROM_TEXT = {
    "m": ("decimal", "Decimal", ""),
    "q": ("fractions", "Fraction", ""),
    "x": ("datetime", "datetime", "fromisoformat"),
    "e": ("datetime", "date", "fromisoformat"),
    "p": ("datetime", "time", "fromisoformat"),
}
"""Module and name of types by tag, and the method that makes one from its text, if not the type itself. They are
imported only when used, which takes as long as starting Python. A datetime is a date too."""
_ITERATORS_OF = ("builtins", "itertools")


class NotData(Exception):
    """The value is not plain data."""


def encode(value: Any, refer: Callable[[Any], int]) -> Any:
    """Returns `value` as JSON. An object that is not plain data becomes the number `refer(value)`, which may raise."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return ["i", hex(int.__int__(value))]
    if isinstance(value, float):
        return ["f", float.__float__(value).hex()]
    if isinstance(value, complex):
        return ["z", value.real.hex(), value.imag.hex()]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray)):
        return ["b" if isinstance(value, bytes) else "a", bytes(value).hex()]
    if isinstance(value, range):
        return ["r", hex(value.start), hex(value.stop), hex(value.step)]
    if isinstance(value, slice):
        return ["c", *(encode(part, refer) for part in (value.start, value.stop, value.step))]
    if isinstance(value, type) and getattr(builtins, name := value.__name__, None) is value:
        return ["g", name]
    for tag, (module, name, _) in _FROM_TEXT.items():
        if module in sys.modules and isinstance(value, getattr(sys.modules[module], name)):
            return [tag, str(value)]
    if "datetime" in sys.modules and isinstance(value, sys.modules["datetime"].timedelta):
        return ["u", value.days, value.seconds, value.microseconds]
    fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        return ["N", type(value).__name__, list(fields), [encode(item, refer) for item in tuple.__iter__(value)]]
    for kind, tag in _COLLECTIONS:
        if isinstance(value, kind):
            return [tag, [encode(item, refer) for item in kind.__iter__(value)]]
    if isinstance(value, collections.defaultdict):
        return ["v", encode(value.default_factory, refer), encode(dict(value), refer)]
    for kind, tag in _DICTS:
        if isinstance(value, kind):
            return [tag, [[encode(key, refer), encode(item, refer)] for key, item in kind.items(value)]]
    for kind, tag in _VIEWS:
        if isinstance(value, kind):  # those of an OrderedDict are of subclasses
            return [tag, [encode(item, refer) for item in value]]
    if type(value).__module__ in _ITERATORS_OF and hasattr(type(value), "__next__"):
        items = list(itertools.islice(value, MAX_ITEMS + 1))
        if len(items) > MAX_ITEMS:
            raise NotData(f"an iterator of more than {MAX_ITEMS} items")
        return ["y", [encode(item, refer) for item in items]]
    return ["w" if isinstance(value, types.CoroutineType) else "@", refer(value)]


def decode(coded: Any, resolve: Callable[..., Any]) -> Any:
    """Inverts `encode`; `resolve` returns the object that a number stands for, with a second argument True for a
    coroutine. Raises NotData: `coded` is malformed."""
    if coded is None or isinstance(coded, (bool, str)):
        return coded
    try:
        tag, *rest = coded
        return _DECODERS[tag](resolve, *rest)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError) as error:
        raise NotData("the value is garbled") from error


def _items(coded: Any, resolve: Callable[[int], Any]) -> list[Any]:
    return [decode(item, resolve) for item in coded]


@functools.cache
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """Returns the class of a named tuple, which has its fields and none of the methods of the solution's class."""
    return collections.namedtuple(name, fields, rename=True)


def _pairs(coded: Any, resolve: Callable[[int], Any]) -> dict[Any, Any]:
    return {decode(key, resolve): decode(item, resolve) for key, item in coded}


def _from_text(tag: str, text: str) -> Any:
    module, name, method = _FROM_TEXT[tag]
    kind = getattr(importlib.import_module(module), name)
    return getattr(kind, method)(text) if method else kind(text)


def _type(name: str) -> type:
    """Returns a built-in type. A function, such as `exec`, is refused: a test that calls it would run the solution's
    code."""
    found = vars(builtins)[name]
    if not isinstance(found, type):
        raise NotData("the value is garbled")
    return found


_DECODERS: dict[str, Callable[..., Any]] = {
    "i": lambda _, number: int(number, 16),
    "f": lambda _, number: float.fromhex(number),
    "z": lambda _, real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)),
    "b": lambda _, digits: bytes.fromhex(digits),
    "a": lambda _, digits: bytearray.fromhex(digits),
    "r": lambda _, *bounds: range(*(int(bound, 16) for bound in bounds)),
    "g": lambda _, name: _type(name),
    "c": lambda resolve, *parts: slice(*_items(parts, resolve)),
    **{tag: lambda _, text, tag=tag: _from_text(tag, text) for tag in _FROM_TEXT},
    "u": lambda _, *parts: importlib.import_module("datetime").timedelta(*parts),
    "l": lambda resolve, items: _items(items, resolve),
    "t": lambda resolve, items: tuple(_items(items, resolve)),
    "N": lambda resolve, name, fields, items: _named_tuple(name, tuple(fields))._make(_items(items, resolve)),
    "s": lambda resolve, items: set(_items(items, resolve)),
    "h": lambda resolve, items: frozenset(_items(items, resolve)),
    "k": lambda resolve, items: collections.deque(_items(items, resolve)),
    "d": lambda resolve, pairs: _pairs(pairs, resolve),
    "o": lambda resolve, pairs: collections.OrderedDict(_pairs(pairs, resolve)),
    "n": lambda resolve, pairs: collections.Counter(_pairs(pairs, resolve)),
    "v": lambda resolve, *parts: collections.defaultdict(*_items(parts, resolve)),
    "li": lambda resolve, items: dict.fromkeys(_items(items, resolve)).keys(),
    "vi": lambda resolve, items: dict(enumerate(_items(items, resolve))).values(),
    "wi": lambda resolve, items: dict(_items(items, resolve)).items(),
    "y": lambda resolve, items: iter(_items(items, resolve)),
    "@": lambda resolve, number: resolve(number),
    "w": lambda resolve, number: resolve(number, True),
}
