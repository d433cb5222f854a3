"""The methods of `str`, `bytes` and `bytearray`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.measure import item_bytes, to_list, type_name
from codezero.evaluate.dryrun.methods_containers import moving, paid
from codezero.evaluate.dryrun.operators import PREPARED, search_cost
from codezero.evaluate.dryrun.tables import table_cost
from codezero.evaluate.dryrun.text import format_text

Method = Callable[..., Any]


_ANY = 1 << 62
"""The length of any part: one that is compared whole at every position, however long."""
_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def _linear(value: Any, /, *_: Any, **__: Any) -> None:
    """Charges for a method whose time and result are proportional to the text."""
    meter.allocate(len(value) * item_bytes(value))


def _lines(value: str, /, keepends: Any = False) -> None:
    _linear(value)
    meter.allocate(sum(map(value.count, _BREAKS)) * 80)


def _strip(value: Any, chars: Any = None, /, *_: Any) -> None:
    """Charges for stripping characters, which at worst searches all of `chars` for each character."""
    _linear(value)
    search_cost(value, chars, _ANY)


def _cut(longest: int) -> Callable[..., None]:
    """Returns the cost of a method that finds a part and copies the text around it."""

    def cost(value: Any, part: Any, /) -> None:
        search_cost(value, part, longest)
        _linear(value)

    return cost


def _search(longest: int) -> Callable[..., None]:
    return lambda value, part=None, /, *_: search_cost(value, part, longest)


def _compare_end(value: Any, parts: Any = None, /, *_: Any) -> None:
    """Charges for comparing the beginning or the end of a text with a part, or with several."""
    for part in parts if type(parts) is tuple else (parts,):
        meter.work(1 + (len(part) >> 4) if type(part) in (str, bytes, bytearray) else 0)


def _split(longest: int) -> Callable[..., None]:
    def cost(value: Any, /, sep: Any = None, *_: Any, **__: Any) -> None:
        search_cost(value, sep, longest)
        meter.allocate(len(value) * 50)

    return cost


def _fill(value: Any, width: Any = 0, /, *_: Any) -> None:
    if isinstance(width, int):
        meter.allocate(max(width, len(value)))


def _expand_tabs(value: str, /, tabsize: Any = 8) -> None:
    if isinstance(tabsize, int):
        meter.allocate(len(value) * max(tabsize, 1))


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


def _replace(value: Any, old: Any, new: Any, /, *_: Any) -> None:
    search_cost(value, old)
    if type(old) is type(value) and type(new) is type(value):
        meter.allocate((len(value) + value.count(old) * len(new)) * max(item_bytes(value), item_bytes(new)))


def _translate(value: str, table: Any, /) -> None:
    meter.allocate(len(value) << 4)
    if type(table) is not dict:
        raise Stop("str.translate without a dict is not interpreted")
    table_cost(table)
    longest = max((len(new) for new in table.values() if type(new) is str), default=1)
    meter.allocate(len(value) * longest + len(table))


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


_COSTS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(_LINEAR.split(), _linear),
    **dict.fromkeys(("count", "find", "index"), _search(PREPARED)),
    **dict.fromkeys(("rfind", "rindex"), _search(_ANY)),  # they compare long parts whole at every position
    **dict.fromkeys(("startswith", "endswith"), _compare_end),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _fill),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), _strip),
    "rsplit": _split(_ANY),
    "replace": _replace,
}
"""The costs of methods that text and bytes share."""


def _shared(kind: type) -> dict[str, Method]:
    return {
        **{name: paid(cost, getattr(kind, name)) for name, cost in _COSTS.items() if hasattr(kind, name)},
        "join": _join,
    }


STR_METHODS: dict[str, Method] = {
    **_shared(str),
    "partition": paid(_cut(PREPARED), str.partition),
    "rpartition": paid(_cut(_ANY), str.rpartition),
    "splitlines": paid(_lines, str.splitlines),
    "split": paid(_split(PREPARED), str.split),
    "expandtabs": paid(_expand_tabs, str.expandtabs),
    "translate": paid(_translate, str.translate),
    "format": _format,
    "encode": encode,
}


def _byte_methods(kind: Any) -> dict[str, Method]:
    """Returns the methods that `bytes` and `bytearray` share."""
    return {
        **_shared(kind),
        **{name: paid(_split(_ANY), getattr(kind, name)) for name in ("split", "splitlines")},
        "decode": decode,
        "hex": paid(lambda value, /, *_, **__: meter.allocate(len(value) * 3), kind.hex),
    }


def _extend(value: bytearray, items: Any, /) -> None:
    found = items if isinstance(items, bytes | bytearray) else to_list(items)  # which it takes in one call
    meter.allocate(len(found))
    value.extend(found)


BYTES_METHODS = _byte_methods(bytes)
BYTEARRAY_METHODS: dict[str, Method] = {
    **_byte_methods(bytearray),
    "append": bytearray.append,
    "clear": bytearray.clear,
    "copy": paid(_linear, bytearray.copy),
    "extend": _extend,
    **{name: paid(moving(1), getattr(bytearray, name)) for name in ("insert", "pop", "remove", "reverse")},
}
