"""The builtin types of programs: their constructors, and `type`."""

from __future__ import annotations

import builtins
from collections import Counter, OrderedDict
from typing import Any

from codezero.evaluate.dryrun.budget import DepthError, Stop, Unsupported, meter
from codezero.evaluate.dryrun.classes import Class, new_object
from codezero.evaluate.dryrun.library_decimal import DECIMAL, Decimal
from codezero.evaluate.dryrun.library_fractions import FRACTION, Fraction
from codezero.evaluate.dryrun.measure import (
    SCALARS,
    NamedTupleValue,
    bound,
    checked,
    defaultdict,
    deque,
    to_list,
    type_name,
)
from codezero.evaluate.dryrun.methods_containers import counter_update
from codezero.evaluate.dryrun.methods_text import decode, encode
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.tables import dict_from_keys, new_frozenset, new_set, update_dict
from codezero.evaluate.dryrun.text import text_of
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import Builtin

_NUMERIC = (int, float, Decimal, Fraction, str, bytes, bytearray)
_MAX_DIGITS = 5_000
"""Most digits of text for `int`; CPython converts up to 4,300 by default."""

_count = counter_update(Counter.update)
_plain_object = Class("object")


def _int(value: Any = 0, /, *base: Any, **kwargs: Any) -> int:
    base = base or ((kwargs.pop("base"),) if "base" in kwargs else ())
    if kwargs or len(base) > 1:
        raise TypeError("int() takes at most 2 arguments")
    if type(value) is Instance:
        value = value.as_number("__int__")
        if isinstance(value, str | bytes):
            raise TypeError(f"__int__ returned non-int (type {type_name(value)})")
    if not isinstance(value, _NUMERIC):
        raise TypeError(
            f"int() argument must be a string, a bytes-like object or a real number, not '{type_name(value)}'"
        )
    if isinstance(value, str | bytes | bytearray):
        if len(value) > _MAX_DIGITS and not base:
            raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")
        if len(value) > _MAX_DIGITS * 4:
            raise Stop("an integer too long")
        return checked(int(value, *base))  # type: ignore[no-any-return]
    return int(value, *base) if base else int(value)


def _float(value: Any = 0.0, /) -> float:
    if type(value) is Instance:
        value = value.as_number("__float__")
    if not isinstance(value, _NUMERIC):
        raise TypeError(f"float() argument must be a string or a real number, not '{type_name(value)}'")
    if isinstance(value, str | bytes | bytearray):
        meter.work(len(value) << 2)
    return float(value)


def _complex(*args: Any, **kwargs: Any) -> complex:
    if kwargs:
        if kwargs.keys() - {"real", "imag"} or (args and ("real" in kwargs or len(args) > 1)):
            raise TypeError("complex() got arguments that do not fit")
        args = (*(args or (kwargs.get("real", 0),)), *[kwargs[name] for name in ("imag",) if name in kwargs])
    args = tuple(arg.as_number("__float__") if type(arg) is Instance else arg for arg in args)
    if not all(isinstance(arg, int | float | Decimal | Fraction | complex | str) for arg in args):
        raise TypeError("complex() argument must be a string or a number")
    for arg in args:
        meter.work(len(arg) if isinstance(arg, str) else 0)
    return complex(*args)


def _str(object: Any = "", *encoding: Any, **kwargs: Any) -> str:
    if encoding or kwargs:
        if type(object) not in (bytes, bytearray):
            raise TypeError("decoding to str: need a bytes-like object")
        return decode(object, *encoding, **kwargs)
    return text_of(object)


def _bytes(source: Any = b"", *encoding: Any, **kwargs: Any) -> bytes:
    value = source
    if type(value) is str and (encoding or "encoding" in kwargs):
        return encode(value, *encoding, **kwargs)
    if encoding or kwargs or type(value) is str:
        raise TypeError("string argument without an encoding, or encoding without a string argument")
    if isinstance(value, int):
        meter.allocate(max(value, 0))
        return bytes(value)
    return bytes(value) if type(value) is bytearray else bytes(to_list(value))


def _bytearray(source: Any = b"", *encoding: Any, **kwargs: Any) -> bytearray:
    made = _bytes(source, *encoding, **kwargs)
    meter.allocate(len(made))
    return bytearray(made)


def _list(items: Any = (), /) -> list[Any]:
    return to_list(items)


def _tuple(items: Any = (), /) -> tuple[Any, ...]:
    return items if type(items) is tuple else tuple(to_list(items))


def _dict(*sources: Any, **kwargs: Any) -> dict[Any, Any]:
    if len(sources) > 1:
        raise TypeError(f"dict expected at most 1 argument, got {len(sources)}")
    result: dict[Any, Any] = {}
    for source in sources:
        update_dict(result, source)
    update_dict(result, kwargs)
    return result


def _object() -> Instance:
    return Instance(_plain_object, ())


def _type(*args: Any) -> Any:
    if len(args) != 1:
        raise Unsupported("type() with three arguments")
    return type_of(args[0])


def counter(*sources: Any, **kwargs: Any) -> Counter[Any]:
    result: Counter[Any] = Counter()
    _count(result, *sources, **kwargs)
    return result


def default_dict(factory: Any = None, /, *sources: Any, **kwargs: Any) -> defaultdict:
    if factory is not None and not callable(factory):
        raise TypeError("first argument must be callable or None")
    return defaultdict(factory, _dict(*sources, **kwargs))


def _range(*bounds: Any) -> range:
    return range(*map(bound, bounds))


def _slice(*bounds: Any) -> slice:
    if not all(type(part) in SCALARS for part in bounds):
        raise Unsupported("a slice of anything but numbers")
    return slice(*bounds)


def _from_hex(kind: Any) -> Builtin:
    def parse(text: Any, /) -> Any:
        meter.allocate(len(text) if type(text) is str else 0)
        return kind.fromhex(text)

    return Builtin("fromhex", parse)


def _error(host: type) -> TypeValue:
    def make(*args: Any) -> Any:
        if len(args) > 2 and issubclass(host, OSError):
            raise Unsupported("an OSError with a file name")  # stored outside its args, where it is not measured
        return host(*args)

    return TypeValue(host, make)


_ERRORS = (
    "ArithmeticError AssertionError AttributeError BaseException EOFError Exception FileNotFoundError "
    "FloatingPointError IOError ImportError IndexError KeyError KeyboardInterrupt LookupError MemoryError "
    "ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError RecursionError "
    "RuntimeError StopIteration SystemExit TimeoutError TypeError UnboundLocalError ValueError ZeroDivisionError"
)
TYPES: dict[str, TypeValue] = {
    **{
        kind.__name__: TypeValue(kind, make)
        for kind, make in (
            (int, _int), (float, _float), (complex, _complex), (str, _str), (bool, bool), (bytes, _bytes),
            (bytearray, _bytearray), (list, _list), (tuple, _tuple), (set, new_set), (frozenset, new_frozenset),
            (dict, _dict), (object, _object), (type, _type), (range, _range), (slice, _slice),
        )
    },
    **{name: _error(getattr(builtins, name)) for name in _ERRORS.split()},
}  # fmt: skip
COLLECTIONS: dict[str, TypeValue] = {
    "Counter": TypeValue(Counter, counter),
    "OrderedDict": TypeValue(OrderedDict, lambda *sources, **kwargs: OrderedDict(_dict(*sources, **kwargs))),
    "defaultdict": TypeValue(defaultdict, default_dict),
    "deque": TypeValue(deque, lambda items=(), maxlen=None: deque(to_list(items), maxlen)),
}


def _from_keys(kind: type) -> Builtin:
    return Builtin("fromkeys", lambda keys, value=None, /: dict_from_keys(kind, keys, value))


for _type_value in (TYPES["dict"], COLLECTIONS["OrderedDict"], COLLECTIONS["defaultdict"]):
    _type_value.attrs["fromkeys"] = _from_keys(_type_value.host)
TYPES["object"].attrs["__new__"] = Builtin("__new__", new_object)
for _kind in (bytes, bytearray):
    TYPES[_kind.__name__].attrs["fromhex"] = _from_hex(_kind)


def _int_from_bytes(source: Any, byteorder: Any = "big", *, signed: Any = False) -> int:
    if isinstance(source, int | str):
        raise TypeError(f"cannot convert '{type_name(source)}' object to bytes")
    return checked(int.from_bytes(_bytes(source), byteorder, signed=bool(signed)))  # type: ignore[no-any-return]


TYPES["int"].attrs["from_bytes"] = Builtin("from_bytes", _int_from_bytes)


def _maketrans(*args: Any) -> dict[int, Any]:
    for arg in args:
        meter.allocate(len(arg) << 7)
    return str.maketrans(*args)


TYPES["str"].attrs["maketrans"] = Builtin("maketrans", _maketrans)

_BY_HOST: dict[type, TypeValue] = {
    **{value.host: value for value in (*TYPES.values(), *COLLECTIONS.values(), DECIMAL["Decimal"], FRACTION)},
    DepthError: TYPES["RecursionError"],
    type(None): TypeValue(type(None), lambda: None),
}


def type_of(value: Any) -> Any:
    """Returns type(value)."""
    kind = type(value)
    if kind is Instance:
        return value.cls if value.cls is not _plain_object else TYPES["object"]
    if kind is NamedTupleValue:
        return value.kind
    if kind in (Class, TypeValue):
        return TYPES["type"]
    if kind not in _BY_HOST:
        raise Unsupported(f"the type of a {type_name(value)}")
    return _BY_HOST[kind]
