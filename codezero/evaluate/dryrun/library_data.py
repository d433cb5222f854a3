"""The interpreted parts of `array`, `struct` and `json`."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.measure import DICTS, NamedTupleValue, measure, to_list, type_name
from codezero.evaluate.dryrun.methods_containers import moving, paid
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import FIELDS, Builtin

_MAX_FORMAT = 200
_MAX_NESTED = 100
_MAX_INDENT = 16


def _array(typecode: Any, items: Any = (), /) -> Any:
    if isinstance(items, str | bytes | bytearray):
        meter.allocate(len(items) * 8)
        return array(typecode, items)
    return array(typecode, to_list(items))


def _extend(value: Any, items: Any, /) -> None:
    found = items if type(items) is array else to_list(items)
    meter.allocate(len(found) << 3)
    value.extend(found)


ARRAY_METHODS: dict[str, Callable[..., Any]] = {
    "append": array.append,
    "extend": _extend,
    "fromlist": _extend,
    "tolist": to_list,
    **{
        name: paid(moving(8), getattr(array, name)) for name in ("count", "index", "insert", "pop", "remove", "reverse")
    },
}
FIELDS[array] = frozenset({"itemsize", "typecode"})
ARRAY: dict[str, Any] = {"array": TypeValue(array, _array)}


def _size(form: Any) -> int:
    """Returns the bytes of a struct format, and charges for them and for the values."""
    if type(form) is not str or len(form) > _MAX_FORMAT:
        raise Unsupported("this format of a struct")
    size = struct.calcsize(form)
    meter.allocate(size << 4)
    return size


def _pack(form: Any, /, *values: Any) -> bytes:
    _size(form)
    if any(type(value) is Instance for value in values):
        raise Unsupported("an object in a struct")
    return struct.pack(form, *values)


def _unpack(form: Any, data: Any, /) -> tuple[Any, ...]:
    _size(form)
    return struct.unpack(form, data)


STRUCT: dict[str, Any] = {
    "calcsize": Builtin("calcsize", _size),
    "error": TypeValue(struct.error, struct.error),
    "pack": Builtin("pack", _pack),
    "unpack": Builtin("unpack", _unpack),
}


def _check(value: Any, depth: int = 0) -> None:
    """Raises TypeError like CPython for a value that JSON cannot represent, Stop for one nested too deep."""
    kind = type(value)
    if depth > _MAX_NESTED:
        raise Stop("JSON nested too deep")
    if kind in (list, tuple, NamedTupleValue):
        for item in value:
            _check(item, depth + 1)
    elif kind in DICTS:
        for key, item in value.items():
            if not isinstance(key, str | int | float | None):
                raise TypeError(f"keys must be str, int, float, bool or None, not {type_name(key)}")
            _check(item, depth + 1)
    elif kind is Instance and value.data is not None:
        raise Unsupported("JSON of this type")
    elif not isinstance(value, str | int | float | None):
        raise TypeError(f"Object of type {type_name(value)} is not JSON serializable")


def _dumps(
    obj: Any,
    *,
    indent: Any = None,
    sort_keys: Any = False,
    separators: Any = None,
    ensure_ascii: Any = True,
    default: Any = None,
) -> str:
    if indent is not None and (type(indent) is not int or not 0 <= indent <= _MAX_INDENT):
        raise Unsupported("this indent")
    if separators is not None:
        separators = tuple(to_list(separators))
        if len(separators) != 2 or not all(type(part) is str and len(part) < _MAX_INDENT for part in separators):
            raise Unsupported("these separators")
    meter.allocate(measure(obj) * (7 * 64 + _MAX_NESTED * (indent or 0)))
    try:
        _check(obj)
    except TypeError:
        if default is not None:
            raise Unsupported("JSON of values that a function converts") from None
        raise
    return json.dumps(
        obj, indent=indent, sort_keys=bool(sort_keys), separators=separators, ensure_ascii=bool(ensure_ascii)
    )


def _loads(s: Any) -> Any:
    if type(s) is not str:
        raise Unsupported("JSON of anything but text")
    meter.allocate(len(s) * 48)
    depth = 0
    for char in s:
        depth += (char in "[{") - (char in "]}")
        if depth > _MAX_NESTED:
            raise Stop("JSON nested too deep")
    return json.loads(s)


JSON: dict[str, Any] = {
    "JSONDecodeError": TypeValue(json.JSONDecodeError, json.JSONDecodeError),
    "dumps": Builtin("dumps", _dumps),
    "loads": Builtin("loads", _loads),
}
