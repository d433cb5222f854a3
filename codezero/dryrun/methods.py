"""The methods of builtin values, as functions that charge for their work: METHODS[host type][name](value, ...)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.dryrun.budget import Stop, meter
from codezero.dryrun.items import get_item
from codezero.dryrun.measure import MATCH, PATTERN, length, to_list, type_name
from codezero.dryrun.methods_containers import CONTAINER_METHODS
from codezero.dryrun.objects import Cached
from codezero.dryrun.operators import contains, search_cost
from codezero.dryrun.regular import MATCH_METHODS, PATTERN_METHODS
from codezero.dryrun.text import format_text
from codezero.dryrun.values import Iterating

Method = Callable[..., Any]


def _linear(method: Method) -> Method:
    """A method whose time and result are proportional to the text."""

    def call(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        meter.allocate(len(value))
        return method(value, *args, **kwargs)

    return call


def _search(method: Method) -> Method:
    def call(value: Any, /, *args: Any) -> Any:
        parts = args[0] if args and type(args[0]) is tuple else args[:1]
        for part in parts:
            search_cost(value, part)
        return method(value, *args)

    return call


def _split(method: Method) -> Method:
    """Keyword arguments too: `sep` and `maxsplit`."""

    def call(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        search_cost(value, args[0] if args else kwargs.get("sep"))
        meter.allocate(len(value) * 50)
        return method(value, *args, **kwargs)

    return call


def _fill(method: Method) -> Method:
    def call(value: Any, width: Any, /, *args: Any) -> Any:
        if isinstance(width, int):
            meter.allocate(max(width, len(value)))
        return method(value, width, *args)

    return call


def _expandtabs(value: str, tabsize: Any = 8) -> str:
    if isinstance(tabsize, int):
        meter.allocate(len(value) * max(tabsize, 1))
    return value.expandtabs(tabsize)


def _join(value: Any, items: Any, /) -> Any:
    parts = to_list(items)
    size = len(value) * len(parts)
    for part in parts:
        if type(part) is type(value):
            size += len(part)
    meter.allocate(size)
    if type(value) is str:
        for index, part in enumerate(parts):
            if type(part) is not str:
                raise TypeError(f"sequence item {index}: expected str instance, {type_name(part)} found")
    return value.join(parts)


def _replace(value: Any, old: Any, new: Any, /, *count: Any) -> Any:
    search_cost(value, old)
    if type(old) is type(value) and type(new) is type(value):
        meter.allocate(len(value) + value.count(old) * len(new))
    return value.replace(old, new, *count)


def _translate(value: str, table: Any, /) -> str:
    meter.allocate(len(value) << 4)
    if type(table) is not dict:
        raise Stop("str.translate without a dict is not interpreted")
    longest = max((len(new) for new in table.values() if type(new) is str), default=1)
    meter.allocate(len(value) * longest + len(table))
    return value.translate(table)


def _format(template: str, /, *args: Any, **kwargs: Any) -> str:
    return format_text(template, args, kwargs)


def _encode(value: str, encoding: Any = "utf-8") -> bytes:
    if encoding not in ("utf-8", "utf8", "ascii", "latin-1"):
        raise Stop("an encoding that is not interpreted")
    meter.allocate(len(value) * 4)
    return value.encode(encoding)


def _decode(value: bytes, encoding: Any = "utf-8") -> str:
    if encoding not in ("utf-8", "utf8", "ascii", "latin-1"):
        raise Stop("an encoding that is not interpreted")
    meter.allocate(len(value) * 4)
    return value.decode(encoding)


_LINEAR = (
    "capitalize casefold isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace "
    "istitle isupper lower lstrip removeprefix removesuffix rstrip splitlines strip swapcase title upper"
)
_SEARCH = "count endswith find index rfind rindex startswith partition rpartition"
_SHARED: dict[str, Method] = {"__contains__": contains, "__getitem__": get_item, "__len__": len}

_STR: dict[str, Method] = {
    **{name: _linear(getattr(str, name)) for name in _LINEAR.split()},
    **{name: _search(getattr(str, name)) for name in _SEARCH.split()},
    **{name: _fill(getattr(str, name)) for name in ("center", "ljust", "rjust", "zfill")},
    "split": _split(str.split),
    "rsplit": _split(str.rsplit),
    "expandtabs": _expandtabs,
    "join": _join,
    "replace": _replace,
    "translate": _translate,
    "format": _format,
    "encode": _encode,
    **_SHARED,
}
_BYTES: dict[str, Method] = {
    **{name: _linear(getattr(bytes, name)) for name in ("hex", "lower", "upper", "strip", "isdigit", "isalpha")},
    **{name: _search(getattr(bytes, name)) for name in ("count", "endswith", "find", "index", "startswith")},
    "decode": _decode,
    "join": _join,
    "replace": _replace,
    **_SHARED,
}


def _to_bytes(value: int, size: Any = 1, byteorder: Any = "big", *, signed: Any = False) -> bytes:
    meter.allocate(size)
    return value.to_bytes(size, byteorder, signed=bool(signed))


_INT: dict[str, Method] = {
    "bit_length": int.bit_length,
    "bit_count": lambda value: bin(value).count("1"),
    "conjugate": lambda value: +value,
    "to_bytes": _to_bytes,
}


def _range_count(value: range, item: Any, /) -> int:
    meter.work(0 if type(item) is int else length(value) << 6)
    return value.count(item)


def _range_index(value: range, item: Any, /) -> int:
    meter.work(0 if type(item) is int else length(value) << 6)
    return value.index(item)


def _send(value: Iterating, item: Any, /) -> Any:
    if not value.is_generator:
        raise AttributeError("'iterator' object has no attribute 'send'")
    return value.raw.send(item)  # type: ignore[attr-defined]


METHODS: dict[type, dict[str, Method]] = {
    str: _STR,
    bytes: _BYTES,
    int: _INT,
    bool: _INT,
    float: {
        "is_integer": float.is_integer,
        "conjugate": float.conjugate,
        "as_integer_ratio": float.as_integer_ratio,
    },
    complex: {"conjugate": complex.conjugate},
    range: {"count": _range_count, "index": _range_index, **_SHARED},
    Iterating: {"__next__": next, "send": _send},
    Cached: {"cache_clear": lambda value: value.results.clear()},
    MATCH: MATCH_METHODS,
    PATTERN: PATTERN_METHODS,
    **{kind: {**table, **_SHARED} for kind, table in CONTAINER_METHODS.items()},
}
