"""The builtin functions that are interpreted, and the names of all builtins."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from sys import getsizeof
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.descriptors import ClassMethod, Property, StaticMethod, Super
from codezero.evaluate.dryrun.instance_checks import is_instance, is_subclass
from codezero.evaluate.dryrun.integers import division_cost, sized
from codezero.evaluate.dryrun.library_decimal import Decimal
from codezero.evaluate.dryrun.library_fractions import Fraction
from codezero.evaluate.dryrun.measure import (
    FEW,
    SCALARS,
    SIZED,
    bound,
    checked,
    hashable,
    kept,
    lazy,
    length,
    measured,
    to_list,
    type_name,
)
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.operators import BINARY, power_modulo
from codezero.evaluate.dryrun.order import is_fixed
from codezero.evaluate.dryrun.reflection import BY_NAME
from codezero.evaluate.dryrun.sorting import keys_of, sorted_items
from codezero.evaluate.dryrun.streams import PER_CASE, Stream, open_file, read_line
from codezero.evaluate.dryrun.text import convert, format_value, repr_of, text_of
from codezero.evaluate.dryrun.type_values import TYPES
from codezero.evaluate.dryrun.values import Builtin, Iterating, charged

_ADD = BINARY["Add"]


def number_sum(items: Any, start: Any = 0) -> Any:
    """Returns sum(items, start)."""
    if type(start) is str:
        raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
    found: Any = items if type(items) is range else to_list(items)
    if type(items) is range:
        meter.work(length(items) << 4)
    if type(start) in SCALARS and (type(found) is range or SCALARS.issuperset(map(type, found))):
        longest = 0 if type(found) is range else max(map(getsizeof, found), default=0)
        if max(longest, getsizeof(start)) > FEW:
            meter.work(len(found) * max(longest, getsizeof(start)))
        return sized(sum(found, start))
    total = start
    for item in found:
        total = _ADD(total, item)
        meter.work(0)
    return total


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() - {"key", "default"}:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument")
        if not args:
            raise TypeError(f"{function.__name__} expected at least 1 argument, got 0")
        if len(args) == 1:
            args = (args[0] if type(args[0]) is range else to_list(args[0]),)
            if type(args[0]) is range:
                meter.work(length(args[0]) << 4)
                return function(*args, **kwargs)
        found = args[0] if len(args) == 1 else list(args)
        if len(args) != 1 and "default" in kwargs:
            raise TypeError(f"Cannot specify a default for {function.__name__}() with multiple positional arguments")
        key = kwargs.get("key")
        keys = keys_of(found, key)
        if not found:
            return function(found, **kwargs)
        return function(found) if key is None else found[function(range(len(keys)), key=keys.__getitem__)]

    return choose


def _sorted(items: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    return sorted_items(to_list(items), key, reverse)


def _len(value: Any, /) -> int:
    if type(value) is Class and value.members is not None:
        return len(value.distinct_members())
    if type(value) in SIZED or type(value) in (range, Instance):
        return len(value)
    raise TypeError(f"object of type '{type_name(value)}' has no len()")


def _reversed(value: Any, /) -> Iterating:
    if type(value) is Instance:
        raise Unsupported("reversed() of an object")
    if type(value) in (set, frozenset) or (type(value) not in SIZED and type(value) is not range):
        raise TypeError(f"'{type_name(value)}' object is not reversible")
    return Iterating(charged(reversed(value)))


def _enumerate(items: Any, start: Any = 0) -> Iterating:
    return Iterating(charged(enumerate(kept(items), bound(start))))


def _zip(*sources: Any, strict: Any = False) -> Iterating:
    fed = [kept(source) for source in sources]
    return Iterating(charged(zip(*fed, strict=bool(strict)), len(fed)))


def _map(function: Any, *sources: Any) -> Iterating:
    if not sources:
        raise TypeError("map() must have at least two arguments.")
    fed = [kept(source) for source in sources]
    return Iterating(charged(map(function, *fed), len(fed)))


def _filter(function: Any, items: Any, /) -> Iterating:
    return Iterating(charged(filter(function, lazy(items))))


def _iter(value: Any, *sentinel: Any) -> Any:
    if sentinel:
        if not callable(value):
            raise TypeError("iter(v, w): v must be callable")
        return Iterating(charged(iter(lambda: measured(value()), *sentinel)))
    if type(value) is Iterating:
        return value
    if type(value) is Instance:
        return value.iterator()
    return Iterating(charged(kept(value)))


def _next(iterator: Any, *default: Any) -> Any:
    if type(iterator) is Stream:
        if line := read_line(iterator):
            return line
        return next(iter(()), *default)
    if type(iterator) not in (Iterating, Instance):
        raise TypeError(f"'{type_name(iterator)}' object is not an iterator")
    meter.work(0)
    return next(iterator, *default)


def _all(items: Any, /) -> bool:
    return all(lazy(items))


def _any(items: Any, /) -> bool:
    return any(lazy(items))


def _abs(value: Any, /) -> Any:
    return sized(abs(value))


def _round(number: Any, ndigits: Any = None) -> Any:
    if isinstance(ndigits, int) and abs(ndigits) > 5000:
        raise Unsupported("round() to so many digits")
    if type(number) is Instance and number.cls.owner("__round__") is not None:
        return number.invoke("__round__", *(() if ndigits is None else (ndigits,)))
    number = number.as_number("__round__") if type(number) is Instance else number
    if not isinstance(number, int | float | Decimal | Fraction):
        raise TypeError(f"type {type_name(number)} doesn't define __round__ method")
    return round(checked(number), ndigits)


def _divmod(a: Any, b: Any, /) -> Any:
    if type(a) is Instance and a.cls.owner("__divmod__") is not None:
        return a.invoke("__divmod__", b)
    if type(b) is Instance and b.cls.owner("__rdivmod__") is not None:
        return b.invoke("__rdivmod__", a)
    if type(a) is Instance or type(b) is Instance:
        raise Unsupported("divmod() of an object")
    division_cost(a, b)
    return divmod(a, b)


def _print(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
    meter.work(0)
    between, last = (" " if sep is None else sep), ("\n" if end is None else end)
    for name, text in (("sep", between), ("end", last)):
        if type(text) is not str:
            raise TypeError(f"{name} must be None or a string, not {type_name(text)}")
    texts = [text_of(value) for value in values]
    meter.allocate(sum(map(len, texts)) + len(between) * len(texts))
    write = get_attribute(PER_CASE["stdout"].get() if file is None else file, "write")
    write(between.join(texts) + last)


def _input(prompt: Any = "", /) -> str:
    if prompt != "":
        _print(prompt, end="")
    line = get_attribute(PER_CASE["stdin"].get(), "readline")()
    if type(line) is not str:
        raise TypeError("object.readline() returned non-string")
    if not line:
        raise EOFError("EOF when reading a line")
    return line.removesuffix("\n")


def _exit(code: Any = None, /) -> None:
    raise SystemExit(code)


def _callable(value: Any, /) -> bool:
    return value.cls.lookup("__call__") is not None if type(value) is Instance else callable(value)


_OTHER_HASHES = 0x2545F491
"""A number that changes hashes where a dry run is repeated with another order of sets."""


def _hash(value: Any, /) -> int:
    found = hash(hashable(value))
    if is_fixed(value) or (type(value) is Instance and value.cls.lookup("__hash__") is not None):
        return found
    meter.unordered = True  # of texts, and what has texts, each process has hashes of its own
    return found ^ _OTHER_HASHES if meter.reordered else found


def _based(function: Callable[[Any], str]) -> Callable[[Any], str]:
    def convert_number(number: Any, /) -> str:
        if type(number) is int:
            meter.allocate(sized(number).bit_length())
        return function(number)

    return convert_number


def _ascii(value: Any, /) -> Any:
    return convert(value, "a")


def _property(fget: Any = None, fset: Any = None, fdel: Any = None, doc: Any = None) -> Property:
    if fget is None or fdel is not None:
        raise Unsupported("this property")
    return Property(fget, fset)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _abs, "all": _all, "any": _any, "ascii": _ascii, "bin": _based(bin), "callable": _callable, "chr": chr,
    "classmethod": ClassMethod, "divmod": _divmod, "enumerate": _enumerate, "exit": _exit, "filter": _filter,
    "format": format_value, "hash": _hash, "hex": _based(hex), "input": _input, "isinstance": is_instance,
    "issubclass": is_subclass, "iter": _iter, "len": _len, "map": _map, "max": _extreme(max), "min": _extreme(min),
    "next": _next, "oct": _based(oct), "open": open_file, "ord": ord,
    "pow": power_modulo, "print": _print, "property": _property, "quit": _exit,
    "repr": repr_of, "reversed": _reversed, "round": _round, "sorted": _sorted, "staticmethod": StaticMethod,
    "sum": number_sum, "super": Super, "zip": _zip, **BY_NAME,
}  # fmt: skip
BUILTINS: dict[str, Any] = {
    **TYPES,
    **{name: Builtin(name, function) for name, function in _FUNCTIONS.items()},
    "NotImplemented": NotImplemented,
    "Ellipsis": ...,
}
BUILTIN_NAMES = frozenset({name for name in dir(builtins) if not name.startswith("_")} | {"exit", "quit"})
