"""What `import` finds: modules with the names of them that are interpreted. Nothing is imported for a program."""

from __future__ import annotations

import bisect
import cmath
import collections
import copy
import functools
import heapq
import itertools
import keyword
import math
import operator
import re
import statistics
import string
import sys
import typing
from types import ModuleType
from typing import Any

from codezero.dryrun.budget import Stop, Unsupported, meter
from codezero.dryrun.library_iteration import BISECT, FUNCTOOLS, HEAPQ, ITERTOOLS
from codezero.dryrun.library_math import CMATH, MATH, OPERATOR, STATISTICS
from codezero.dryrun.measure import ATOMS, DICTS, Record, to_list
from codezero.dryrun.objects import Instance
from codezero.dryrun.regular import MEMBERS as RE
from codezero.dryrun.type_values import COLLECTIONS
from codezero.dryrun.values import Annotation, Builtin, Hidden, Module, Opaque

_MAX_FIELDS = 100


class NamedTuple(Hidden):
    """A type made by `namedtuple`."""

    __slots__ = ("defaults", "fields", "name")

    def __init__(self, name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> None:
        self.name, self.fields, self.defaults = name, fields, defaults

    def __call__(self, /, *args: Any, **kwargs: Any) -> Record:
        values = dict(zip(self.fields, args, strict=False))
        if len(args) > len(self.fields) or kwargs.keys() - set(self.fields) or values.keys() & kwargs.keys():
            raise TypeError(f"{self.name}() got arguments that do not fit its fields")
        first = len(self.fields) - len(self.defaults)
        values = {**dict(zip(self.fields[first:], self.defaults, strict=True)), **values, **kwargs}
        if len(values) < len(self.fields):
            raise TypeError(f"{self.name}() missing required positional arguments")
        record = Record(values[field] for field in self.fields)
        record.kind = self
        return record


def _namedtuple(typename: Any, field_names: Any, *, defaults: Any = ()) -> NamedTuple:
    names = field_names.replace(",", " ").split() if type(field_names) is str else to_list(field_names)
    if len(names) > _MAX_FIELDS or type(typename) is not str:
        raise Unsupported("this namedtuple")
    for name in names:
        if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"Type names and field names must be valid identifiers: {name!r}")
    if len(set(names)) < len(names):
        raise ValueError("Encountered duplicate field name")
    return NamedTuple(typename, tuple(names), tuple(to_list(defaults if defaults is not None else ())))


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind is Instance:
        new = Instance(value.cls, value.args)
        new.attrs = dict(value.attrs)
        return new
    if kind in (list, set, collections.deque) or kind in DICTS:
        meter.allocate(len(value) * 16)
        return value.copy()
    if kind in ATOMS or kind in (tuple, frozenset, range, Record):
        return value
    raise Unsupported("a copy of this value")


def _deepcopy(value: Any, memo: Any = None) -> Any:
    return _copied(value, {})


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """A deep copy; `memo` has those made already by the id of the original."""
    kind = type(value)
    if kind in ATOMS or kind is range:
        return value
    if id(value) in memo:
        return memo[id(value)]
    meter.allocate(64)
    new: Any
    if kind in (list, set, collections.deque):
        new = memo[id(value)] = kind() if kind is not collections.deque else collections.deque(maxlen=value.maxlen)
        add = new.add if kind is set else new.append
        for item in list(value):
            add(_copied(item, memo))
    elif kind in (tuple, frozenset):
        new = kind(_copied(item, memo) for item in value)
    elif kind in DICTS:
        new = memo[id(value)] = (
            collections.defaultdict(value.default_factory) if kind is collections.defaultdict else kind()
        )
        for key, item in list(value.items()):
            new[_copied(key, memo)] = _copied(item, memo)
    elif kind is Instance:
        new = memo[id(value)] = Instance(value.cls, value.args)
        for name, item in list(value.attrs.items()):
            new.attrs[name] = _copied(item, memo)
    else:
        raise Unsupported("a copy of this value")
    return new


def _read(*size: Any) -> str:
    if size:
        raise Unsupported("read() with a size")
    return "".join(meter.lines)


def _write(text: Any) -> int:
    if type(text) is not str:
        raise TypeError("write() argument must be str")
    meter.write(text)
    return len(text)


def _set_recursion_limit(limit: Any) -> None:
    if not isinstance(limit, int):
        raise TypeError("an integer is required")
    if limit < 500:
        raise Unsupported("a low recursion limit")
    meter.recursion_limit = limit


def _exit(code: Any = None, /) -> None:
    raise SystemExit(code)


_STDIN = Module(
    "stdin",
    {
        "readline": Builtin("readline", lambda: next(meter.lines, "")),
        "readlines": Builtin("readlines", lambda: list(meter.lines)),
        "read": Builtin("read", _read),
    },
    frozenset(dir(sys.__stdin__)),
)
_STDOUT = Module(
    "stdout",
    {"write": Builtin("write", _write), "flush": Builtin("flush", lambda: None)},
    frozenset(dir(sys.__stdout__)),
)
_SYS: dict[str, Any] = {
    "maxsize": sys.maxsize,
    "exit": Builtin("exit", _exit),
    "setrecursionlimit": Builtin("setrecursionlimit", _set_recursion_limit),
    "getrecursionlimit": Builtin("getrecursionlimit", lambda: meter.recursion_limit),
    "stdin": _STDIN,
    "stdout": _STDOUT,
}
_TYPING = {
    name: Annotation()
    for name in [
        "Any",
        "AnyStr",
        "Callable",
        "ClassVar",
        "Collection",
        "Counter",
        "DefaultDict",
        "Deque",
        "Dict",
        "Final",
        "FrozenSet",
        "Generator",
        "Generic",
        "Hashable",
        "Iterable",
        "Iterator",
        "List",
        "Literal",
        "Mapping",
        "MutableMapping",
        "MutableSequence",
        "NoReturn",
        "Optional",
        "OrderedDict",
        "Sequence",
        "Set",
        "Sized",
        "Text",
        "Tuple",
        "Type",
        "Union",
    ]
}
_STRING = {
    name: getattr(string, name)
    for name in [
        "ascii_letters",
        "ascii_lowercase",
        "ascii_uppercase",
        "digits",
        "hexdigits",
        "octdigits",
        "printable",
        "punctuation",
        "whitespace",
    ]
}


def _module(host: ModuleType, members: dict[str, Any]) -> Module:
    return Module(host.__name__, members, frozenset(dir(host)))


MODULES: dict[str, Module] = {
    module.name: module
    for module in (
        _module(bisect, BISECT),
        _module(cmath, CMATH),
        _module(collections, {**COLLECTIONS, "namedtuple": Builtin("namedtuple", _namedtuple)}),
        _module(copy, {"copy": Builtin("copy", _copy), "deepcopy": Builtin("deepcopy", _deepcopy)}),
        _module(functools, FUNCTOOLS),
        _module(heapq, HEAPQ),
        _module(itertools, ITERTOOLS),
        _module(math, MATH),
        _module(operator, OPERATOR),
        _module(re, RE),
        _module(statistics, STATISTICS),
        _module(string, _STRING),
        _module(sys, _SYS),
        _module(typing, _TYPING),
    )
}


def find_module(name: str) -> Module | Opaque:
    """The module of an import. Raises Stop for one outside the standard library: it may or may not be installed."""
    if name in MODULES:
        return MODULES[name]
    if name.split(".")[0] in sys.stdlib_module_names:
        return Opaque(f"module {name}")
    raise Stop(f"module {name[:40]} is not interpreted")


def import_from(module_name: str, name: str) -> Any:
    """The value of `from module_name import name`. Raises ImportError like CPython."""
    module = find_module(module_name)
    if isinstance(module, Opaque):
        return Opaque(f"{module_name}.{name}")
    try:
        return module.member(name)
    except KeyError:
        raise ImportError(f"cannot import name '{name}' from '{module_name}'") from None
