"""The methods of builtin values, as functions that charge for their work: METHODS[host type][name](value, ...)."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from codezero.evaluate.dryrun.budget import meter
from codezero.evaluate.dryrun.descriptors import Cached
from codezero.evaluate.dryrun.errors import throwable
from codezero.evaluate.dryrun.items import get_item
from codezero.evaluate.dryrun.library_data import ARRAY_METHODS
from codezero.evaluate.dryrun.library_decimal import DECIMAL_METHODS, Decimal
from codezero.evaluate.dryrun.library_fractions import FRACTION_METHODS, Fraction
from codezero.evaluate.dryrun.library_random import RANDOM_METHODS, Random
from codezero.evaluate.dryrun.library_time import DATE_METHODS, DATETIME_METHODS, DELTA_METHODS, TIME_METHODS
from codezero.evaluate.dryrun.measure import MATCH, PATTERN, VIEWS, NamedTupleValue, length, measured
from codezero.evaluate.dryrun.methods_containers import CONTAINER_METHODS
from codezero.evaluate.dryrun.methods_streams import OUTPUT_METHODS, STREAM_METHODS
from codezero.evaluate.dryrun.methods_text import BYTEARRAY_METHODS, BYTES_METHODS, STR_METHODS
from codezero.evaluate.dryrun.operators import contains
from codezero.evaluate.dryrun.regular import MATCH_METHODS, PATTERN_METHODS
from codezero.evaluate.dryrun.streams import Output, Stream
from codezero.evaluate.dryrun.values import Iterating

Method = Callable[..., Any]
_SHARED: dict[str, Method] = {"__contains__": contains, "__len__": len}
_INDEXED: dict[str, Method] = {**_SHARED, "__getitem__": get_item}


def _to_bytes(value: int, length: Any = 1, byteorder: Any = "big", *, signed: Any = False) -> bytes:
    meter.allocate(length)
    return value.to_bytes(length, byteorder, signed=bool(signed))


_INT: dict[str, Method] = {
    "bit_length": int.bit_length,
    "bit_count": int.bit_count,
    "conjugate": int.conjugate,
    "to_bytes": _to_bytes,
}


def _range_count(value: range, item: Any, /) -> int:
    meter.work(0 if type(item) is int else length(value) << 6)
    return value.count(item)


def _range_index(value: range, item: Any, /) -> int:
    meter.work(0 if type(item) is int else length(value) << 6)
    return value.index(measured(item))  # the error has its text


def _of_generator(name: str) -> Method:
    def call(value: Iterating, /, *args: Any) -> Any:
        if not value.is_generator:
            raise AttributeError(f"'iterator' object has no attribute '{name}'")
        return getattr(value, name)(*map(throwable, args) if name == "throw" else args)

    return call


METHODS: dict[type, dict[str, Method]] = {
    str: {**STR_METHODS, **_INDEXED},
    bytes: {**BYTES_METHODS, **_INDEXED},
    bytearray: {**BYTEARRAY_METHODS, **_INDEXED},
    int: _INT,
    bool: _INT,
    float: {"is_integer": float.is_integer, "conjugate": float.conjugate, "as_integer_ratio": float.as_integer_ratio},
    complex: {"conjugate": complex.conjugate},
    range: {"count": _range_count, "index": _range_index, **_INDEXED},
    Iterating: {"__next__": next, **{name: _of_generator(name) for name in ("close", "send", "throw")}},
    Cached: {"cache_clear": lambda value: value.results.clear()},
    Decimal: DECIMAL_METHODS,
    Fraction: FRACTION_METHODS,
    Random: RANDOM_METHODS,
    array: {**ARRAY_METHODS, **_INDEXED},
    date: DATE_METHODS,
    datetime: DATETIME_METHODS,
    time: TIME_METHODS,
    timedelta: DELTA_METHODS,
    MATCH: MATCH_METHODS,
    PATTERN: PATTERN_METHODS,
    Stream: STREAM_METHODS,
    Output: OUTPUT_METHODS,
    **{
        kind: {**table, **(_SHARED if kind in (set, frozenset, *VIEWS) else _INDEXED)}
        for kind, table in CONTAINER_METHODS.items()
        if kind is not NamedTupleValue
    },
}
RECORD_METHODS: dict[str, Method] = {**CONTAINER_METHODS[NamedTupleValue], **_INDEXED}
"""The methods of named tuples, whose fields and own methods come first."""
