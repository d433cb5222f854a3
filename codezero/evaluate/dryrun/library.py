"""The modules that `import` finds, with their interpreted names. Nothing is imported for a program."""

from __future__ import annotations

import collections.abc
import string
import sys
import typing
from importlib import import_module
from sys import getsizeof
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.class_kinds import ABC_MODULE, ENUM_MODULE
from codezero.evaluate.dryrun.library_data import ARRAY, JSON, STRUCT
from codezero.evaluate.dryrun.library_dataclasses import DATACLASSES
from codezero.evaluate.dryrun.library_decimal import DECIMAL, Decimal
from codezero.evaluate.dryrun.library_fractions import FRACTION, Fraction
from codezero.evaluate.dryrun.library_iteration import BISECT, FUNCTOOLS, HEAPQ, ITERTOOLS
from codezero.evaluate.dryrun.library_math import CMATH, MATH, OPERATOR, STATISTICS
from codezero.evaluate.dryrun.library_random import RANDOM
from codezero.evaluate.dryrun.library_system import GC, IO, OS, RESOURCE, SYS
from codezero.evaluate.dryrun.library_time import DATETIME
from codezero.evaluate.dryrun.measure import ATOMS, DICTS, NamedTupleValue, defaultdict, deque
from codezero.evaluate.dryrun.modules import Module
from codezero.evaluate.dryrun.named_tuples import NAMED_TUPLE, namedtuple
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.regular import RE
from codezero.evaluate.dryrun.type_objects import GENERIC, Annotation
from codezero.evaluate.dryrun.type_values import COLLECTIONS
from codezero.evaluate.dryrun.values import Builtin, Opaque

_SHARED = frozenset({range, Decimal, Fraction})
"""Types of which a value is its own copy, besides those of ATOMS."""


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind in ATOMS or kind in (tuple, frozenset, NamedTupleValue) or kind in _SHARED or _is_member(value):
        return value
    if kind is Instance:
        _plainly_copied(value)
        meter.allocate(getsizeof(value.attrs))
        new = Instance(value.cls, value.args, _copy(value.data))
        new.attrs = dict(value.attrs)
        return new
    if kind in (list, set, deque) or kind in DICTS:
        meter.allocate(getsizeof(value))
        return value.copy()
    raise Unsupported("a copy of this value")


def _is_member(value: Any) -> bool:
    """Returns whether a value is a member of an enumeration, of which there are no copies."""
    return type(value) is Instance and value.cls.members is not None


def _plainly_copied(value: Instance) -> None:
    """Raises Unsupported for an object whose class has methods that `copy` calls."""
    if value.cls.lookup("__new__") is not None or value.cls.lookup("__getattr__") is not None:
        raise Unsupported("a copy of this value")


def _deepcopy(value: Any, memo: Any = None) -> Any:
    return _copied(value, {})


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """Returns a deep copy; `memo` has the copies made so far by the id of the original."""
    kind = type(value)
    if kind in ATOMS or kind in _SHARED or _is_member(value):
        return value
    if id(value) in memo:
        return memo[id(value)]
    meter.allocate(getsizeof(value.attrs if kind is Instance else value))
    new: Any
    if kind in (list, set, deque):
        new = memo[id(value)] = kind() if kind is not deque else deque(maxlen=value.maxlen)
        add = new.add if kind is set else new.append
        for item in list(value):
            add(_copied(item, memo))
    elif kind in (tuple, frozenset):
        new = kind(_copied(item, memo) for item in value)
    elif kind in DICTS:
        new = memo[id(value)] = defaultdict(value.default_factory) if kind is defaultdict else kind()
        for key, item in list(value.items()):
            new[_copied(key, memo)] = _copied(item, memo)
    elif kind is Instance:
        _plainly_copied(value)
        new = memo[id(value)] = Instance(value.cls, value.args)
        new.data = _copied(value.data, memo)
        for name, item in list(value.attrs.items()):
            new.attrs[name] = _copied(item, memo)
    else:
        raise Unsupported("a copy of this value")
    return new


_TYPES = (
    "Any AnyStr Callable ClassVar Collection Dict Final FrozenSet Generator Hashable Iterable Iterator List Literal "
    "Mapping MutableMapping MutableSequence NoReturn Optional Sequence Set Sized Text Tuple Type Union"
)
_TYPING: dict[str, Any] = {
    name: Annotation(getattr(getattr(typing, name), "__origin__", None)) for name in _TYPES.split()
}
_TYPING |= {
    **{name: COLLECTIONS[name] for name in ("Counter", "OrderedDict")},  # a call makes one, also by typing's name
    "DefaultDict": COLLECTIONS["defaultdict"],
    "Deque": COLLECTIONS["deque"],
    "Generic": GENERIC,
    "NamedTuple": NAMED_TUPLE,
    "TypeVar": Builtin("TypeVar", lambda name, *bounds, **kwargs: Annotation()),
}
_ABSTRACT = {name: Annotation(kind) for name, kind in vars(collections.abc).items() if isinstance(kind, type)}
_TEXTS = "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation whitespace"
_STRING: dict[str, Any] = {name: getattr(string, name) for name in _TEXTS.split()}


def _capwords(s: Any, sep: Any = None) -> Any:
    if type(s) is not str:
        raise Unsupported("words of anything but text")
    meter.allocate(len(s) << 6)
    return string.capwords(s, sep)


_STRING["capwords"] = Builtin("capwords", _capwords)


def _module(name: str, members: dict[str, Any]) -> Module:
    host = import_module(name)
    return Module(name, members, frozenset(dir(host)), getattr(host, "__all__", None))


_COLLECTIONS_ABC = _module("collections.abc", _ABSTRACT)
MODULES: dict[str, Module] = {
    "collections.abc": _COLLECTIONS_ABC,
    "os.path": OS["path"],
    "resource": Module("resource", RESOURCE, frozenset(RESOURCE)),
} | {
    name: _module(name, members)
    for name, members in {
        "abc": ABC_MODULE,
        "array": ARRAY,
        "bisect": BISECT,
        "cmath": CMATH,
        "collections": {**COLLECTIONS, "abc": _COLLECTIONS_ABC, "namedtuple": Builtin("namedtuple", namedtuple)},
        "contextlib": {},
        "copy": {"copy": Builtin("copy", _copy), "deepcopy": Builtin("deepcopy", _deepcopy)},
        "dataclasses": DATACLASSES,
        "datetime": DATETIME,
        "decimal": DECIMAL,
        "enum": ENUM_MODULE,
        "fractions": {"Fraction": FRACTION},
        "functools": FUNCTOOLS,
        "gc": GC,
        "heapq": HEAPQ,
        "io": IO,
        "itertools": ITERTOOLS,
        "json": JSON,
        "math": MATH,
        "operator": OPERATOR,
        "os": OS,
        "queue": {},
        "random": RANDOM,
        "re": RE,
        "statistics": STATISTICS,
        "string": _STRING,
        "struct": STRUCT,
        "sys": SYS,
        "threading": {},
        "types": {},
        "typing": _TYPING,
    }.items()
}


def find_module(name: str) -> Module | Opaque:
    """Returns the module of an import. Raises Stop for one outside the standard library, which may not be installed."""
    if name in MODULES:
        return MODULES[name]
    if name.split(".")[0] in sys.stdlib_module_names:
        return Opaque(f"module {name}")
    raise Stop(f"module {name[:40]} is not interpreted")


def import_from(module_name: str, name: str) -> Any:
    """Returns the value of `from module_name import name`. Raises ImportError like CPython."""
    module = find_module(module_name)
    if isinstance(module, Opaque):
        return Opaque(f"{module_name}.{name}")
    try:
        return module.member(name)
    except KeyError:
        raise ImportError(f"cannot import name '{name}' from '{module_name}'") from None
