"""The methods of `str`, `bytes` and `bytearray`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.measure import item_bytes, to_list, type_name
from codezero.evaluate.dryrun.methods_containers import moving
from codezero.evaluate.dryrun.operators import PREPARED, search_cost
from codezero.evaluate.dryrun.tables import table_cost
from codezero.evaluate.dryrun.text import format_text

Method = Callable[..., Any]


def _linear(method: Method) -> Method:
    """Wraps a method whose time and result are proportional to the text."""

    def call(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        meter.allocate(len(value) * item_bytes(value))
        return method(value, *args, **kwargs)

    return call


_ANY = 1 << 62
"""The length of any part: one that is compared whole at every position, however long."""
_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def _lines(value: str, keepends: Any = False) -> list[str]:
    meter.allocate(len(value) * item_bytes(value))
    meter.allocate(sum(map(value.count, _BREAKS)) * 80)
    return value.splitlines(keepends)


def _strip(method: Method) -> Method:
    """Wraps a method that strips characters: at worst it searches all of `chars` for each character."""

    def call(value: Any, /, *chars: Any) -> Any:
        meter.allocate(len(value) * item_bytes(value))
        for part in chars:
            search_cost(value, part, longest=_ANY)
        return method(value, *chars)

    return call


def _cut(method: Method, longest: int = PREPARED) -> Method:
    """Wraps a method that finds a part and copies the text around it."""

    def call(value: Any, part: Any, /) -> Any:
        search_cost(value, part, longest)
        meter.allocate(len(value) * item_bytes(value))
        return method(value, part)

    return call


def _search(method: Method, longest: int = PREPARED) -> Method:
    def call(value: Any, /, *args: Any) -> Any:
        for part in args[:1]:
            search_cost(value, part, longest)
        return method(value, *args)

    return call


def _compare_end(method: Method) -> Method:
    """Wraps a method that compares the beginning or the end of a text with a part, or with several."""

    def call(value: Any, /, *args: Any) -> Any:
        parts = args[0] if args and type(args[0]) is tuple else args[:1]
        meter.work(sum(1 + (len(part) >> 4) for part in parts if type(part) in (str, bytes, bytearray)))
        return method(value, *args)

    return call


def _split(method: Method, longest: int = PREPARED) -> Method:
    """Wraps a method that splits text; takes the keyword arguments `sep` and `maxsplit` too."""

    def call(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        search_cost(value, args[0] if args else kwargs.get("sep"), longest)
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
    size, width = len(value) * len(parts), item_bytes(value)
    for part in parts:
        if type(part) is type(value):
            size += len(part)
            width = max(width, item_bytes(part))
    meter.allocate(size * width)
    if type(value) is str:
        for index, part in enumerate(parts):
            if type(part) is not str:
                raise TypeError(f"sequence item {index}: expected str instance, {type_name(part)} found")
    return value.join(parts)


def _replace(value: Any, old: Any, new: Any, /, *count: Any) -> Any:
    search_cost(value, old)
    if type(old) is type(value) and type(new) is type(value):
        meter.allocate((len(value) + value.count(old) * len(new)) * max(item_bytes(value), item_bytes(new)))
    return value.replace(old, new, *count)


def _translate(value: str, table: Any, /) -> str:
    meter.allocate(len(value) << 4)
    if type(table) is not dict:
        raise Stop("str.translate without a dict is not interpreted")
    table_cost(table)
    longest = max((len(new) for new in table.values() if type(new) is str), default=1)
    meter.allocate(len(value) * longest + len(table))
    return value.translate(table)


def _format(template: str, /, *args: Any, **kwargs: Any) -> str:
    return format_text(template, args, kwargs)


def _check_encoding(encoding: Any, errors: Any) -> None:
    if encoding not in ("utf-8", "utf8", "ascii", "latin-1") or errors not in ("strict", "ignore", "replace"):
        raise Stop("an encoding that is not interpreted")


def encode(value: str, encoding: Any = "utf-8", errors: Any = "strict") -> bytes:
    """Returns value.encode(encoding, errors)."""
    _check_encoding(encoding, errors)
    meter.allocate(len(value) * 4)
    return value.encode(encoding, errors)


def decode(value: bytes, encoding: Any = "utf-8", errors: Any = "strict") -> str:
    """Returns value.decode(encoding, errors)."""
    _check_encoding(encoding, errors)
    meter.allocate(len(value) * 4)
    return value.decode(encoding, errors)


_LINEAR = (
    "capitalize casefold isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace "
    "istitle isupper lower removeprefix removesuffix swapcase title upper"
)


def _searches(kind: type) -> dict[str, Method]:
    """Returns the methods that search, of which those from the right compare long parts whole at every position."""
    return {
        **{name: _search(getattr(kind, name)) for name in ("count", "find", "index")},
        **{name: _search(getattr(kind, name), _ANY) for name in ("rfind", "rindex")},
        **{name: _compare_end(getattr(kind, name)) for name in ("startswith", "endswith")},
    }


STR_METHODS: dict[str, Method] = {
    **{name: _linear(getattr(str, name)) for name in _LINEAR.split()},
    **_searches(str),
    **{name: _fill(getattr(str, name)) for name in ("center", "ljust", "rjust", "zfill")},
    **{name: _strip(getattr(str, name)) for name in ("strip", "lstrip", "rstrip")},
    "partition": _cut(str.partition),
    "rpartition": _cut(str.rpartition, _ANY),
    "splitlines": _lines,
    "split": _split(str.split),
    "rsplit": _split(str.rsplit, _ANY),
    "expandtabs": _expandtabs,
    "join": _join,
    "replace": _replace,
    "translate": _translate,
    "format": _format,
    "encode": encode,
}


def _hex(value: Any, *args: Any, **kwargs: Any) -> str:
    meter.allocate(len(value) * 3)
    return value.hex(*args, **kwargs)  # type: ignore[no-any-return]


_BYTES_LINEAR = "isalnum isalpha isascii isdigit islower isspace istitle isupper lower swapcase title upper"


def _byte_methods(kind: type) -> dict[str, Method]:
    """Returns the methods that `bytes` and `bytearray` share."""
    return {
        **{name: _linear(getattr(kind, name)) for name in _BYTES_LINEAR.split()},
        **_searches(kind),
        **{name: _fill(getattr(kind, name)) for name in ("center", "ljust", "rjust", "zfill")},
        **{name: _strip(getattr(kind, name)) for name in ("strip", "lstrip", "rstrip")},
        **{name: _split(getattr(kind, name), _ANY) for name in ("split", "rsplit", "splitlines")},
        "decode": decode,
        "hex": _hex,
        "join": _join,
        "replace": _replace,
    }


def byte_items(items: Any) -> Any:
    """Returns `items` as bytes or as a list of integers, so that a bytearray takes them in one call."""
    return items if isinstance(items, bytes | bytearray) else to_list(items)


def _extend(value: bytearray, items: Any, /) -> None:
    found = byte_items(items)
    meter.allocate(len(found))
    value.extend(found)


BYTES_METHODS = _byte_methods(bytes)
BYTEARRAY_METHODS: dict[str, Method] = {
    **_byte_methods(bytearray),
    "append": bytearray.append,
    "clear": bytearray.clear,
    "copy": _linear(bytearray.copy),
    "extend": _extend,
    **{name: moving(getattr(bytearray, name), 1) for name in ("insert", "pop", "remove", "reverse")},
}
