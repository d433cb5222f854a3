"""`dataclasses`: like CPython, generates the methods of a dataclass as source, which is then interpreted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.interpreted import define
from codezero.evaluate.dryrun.measure import DICTS, NamedTupleValue, type_name
from codezero.evaluate.dryrun.objects import ORDER, Instance
from codezero.evaluate.dryrun.scope import is_dunder
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import FIELDS, Builtin, Hidden

_MAX_FIELDS = 100
_MISSING = object()
_OPTIONS = {"init": True, "repr": True, "eq": True, "order": False, "unsafe_hash": False, "frozen": False,
            "match_args": True, "kw_only": False, "slots": False}  # fmt: skip


class Field(Hidden):
    """A field of a dataclass, as `field()` describes it."""

    __slots__ = ("compare", "default", "factory", "hash", "init", "kw_only", "name", "repr")

    def __init__(
        self,
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: Any = True,
        repr: Any = True,
        hash: Any = None,
        compare: Any = True,
        kw_only: Any = None,
        metadata: Any = None,
    ) -> None:
        if default is not _MISSING and default_factory is not _MISSING:
            raise ValueError("cannot specify both default and default_factory")
        self.name, self.default, self.factory, self.kw_only = "", default, default_factory, kw_only
        self.init, self.repr, self.compare = bool(init), bool(repr), bool(compare)
        self.hash = self.compare if hash is None else bool(hash)

    @property
    def is_optional(self) -> bool:
        return self.default is not _MISSING or self.factory is not _MISSING


def _dataclass(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return Builtin("dataclass", lambda cls, /: _make_dataclass(cls, **options))
    return _make_dataclass(cls, **options)


def _make_dataclass(cls: Any, **given: Any) -> Class:
    if type(cls) is not Class or cls.builtin is not None or cls.trusted or given.keys() - _OPTIONS.keys():
        raise Unsupported("this dataclass")
    options = {**_OPTIONS, **given}
    for base in cls.bases:
        if base.fields and base.frozen != bool(options["frozen"]):
            raise TypeError("cannot inherit frozen dataclass from a non-frozen one, or the other way round")
    fields: dict[str, Field] = {}
    for one in reversed(cls.mro[1:]):
        fields.update(one.fields)
    for name, is_of_class in cls.annotated.items():
        if not is_of_class:
            fields[name] = _field(cls, name, bool(options["kw_only"]))
    if len(fields) > _MAX_FIELDS:
        raise Stop("a dataclass with so many fields")
    cls.fields, cls.frozen = fields, bool(options["frozen"])
    names = _helpers(fields)
    define("\n".join(_source(cls, options)), names)
    for name, value in names.items():
        if is_dunder(name) and (name in ORDER or name not in cls.namespace):
            if name in ORDER and name in cls.namespace:
                raise TypeError(f"Cannot overwrite attribute {name} in class {cls.name}")
            cls.namespace[name] = value
    if options["eq"] and not cls.frozen and not options["unsafe_hash"]:
        cls.namespace.setdefault("__hash__", None)
    if options["slots"]:
        cls.slots = frozenset(fields)
    if options["match_args"]:
        cls.namespace.setdefault("__match_args__", tuple(f.name for f in fields.values() if f.init and not f.kw_only))
    return cls


def _is_unhashable(value: Any) -> bool:
    """Returns whether a default counts as mutable: before Python 3.11 only lists, sets and dicts do."""
    data = value.data if type(value) is Instance else value
    if sys.version_info < (3, 11):
        return isinstance(data, list | set | dict)
    if type(value) is Instance and (data is None or value.cls.owner("__hash__") is not None):
        return value.cls.hashing() is None
    return type(data).__hash__ is None


def _field(cls: Class, name: str, kw_only: bool) -> Field:
    """Returns the field of an annotated name; the class keeps its default as an attribute."""
    value = cls.namespace.get(name, _MISSING)
    field = value if type(value) is Field else Field(default=value)
    field.name = name
    field.kw_only = kw_only if field.kw_only is None else bool(field.kw_only)
    if _is_unhashable(field.default):
        kind = type_name(field.default)
        raise ValueError(f"mutable default <class '{kind}'> for field {name} is not allowed: use default_factory")
    cls.namespace.pop(name, None)
    if field.default is not _MISSING:
        cls.namespace[name] = field.default
    return field


def _helpers(fields: dict[str, Field]) -> dict[str, Any]:
    """Returns the values that the generated methods use, by names that no program uses."""
    shown: list[Any] = []

    def begin(instance: Any) -> None:
        if any(instance is one for one in shown):
            raise Stop("the text of an object within itself")
        shown.append(instance)

    names: dict[str, Any] = {
        "_dc_set": Builtin("set", lambda instance, name, value, /: instance.attrs.__setitem__(name, value)),
        "_dc_missing": Builtin("missing", lambda: None),
        "_dc_begin": Builtin("begin", begin),
        "_dc_end": Builtin("end", lambda: shown.pop() and None),
    }
    for number, field in enumerate(fields.values()):
        names[f"_dc_default{number}"], names[f"_dc_factory{number}"] = field.default, field.factory
    return names


def _source(cls: Class, options: dict[str, Any]) -> Iterator[str]:
    fields = list(cls.fields.values())
    if options["init"]:
        yield from _init(cls, fields)
    if options["repr"]:
        parts = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in fields if field.repr)
        yield "def __repr__(self):"
        yield "    _dc_begin(self)"
        yield f'    try: return f"{{self.__class__.__qualname__}}({parts})"'
        yield "    finally: _dc_end()"
    compared = [field for field in fields if field.compare]
    if options["eq"]:
        yield from _comparison("__eq__", "==", compared)
    if options["order"]:
        if not options["eq"]:
            raise ValueError("eq must be true if order is true")
        for name, sign in zip(ORDER, ("<", "<=", ">", ">="), strict=True):
            yield from _comparison(name, sign, compared)
    if options["unsafe_hash"] or (options["eq"] and options["frozen"]):
        yield f"def __hash__(self): return hash({_tuple('self', [field for field in fields if field.hash])})"


def _init(cls: Class, fields: list[Field]) -> Iterator[str]:
    params = ["self"]
    only: list[str] = []
    body: list[str] = []
    has_default = False
    for number, field in enumerate(fields):
        value = field.name
        if field.init:
            default = "" if not field.is_optional else f"=_dc_default{number}"
            if field.factory is not _MISSING:
                default = "=_dc_missing"
                value = f"_dc_factory{number}() if {field.name} is _dc_missing else {field.name}"
            if has_default and not default and not field.kw_only:
                raise TypeError(f"non-default argument {field.name!r} follows default argument")
            has_default = has_default or (bool(default) and not field.kw_only)
            (only if field.kw_only else params).append(field.name + default)
        elif field.factory is not _MISSING:
            value = f"_dc_factory{number}()"
        else:
            continue
        body.append(f"    _dc_set(self, {field.name!r}, {value})")
    if "self" in cls.fields:
        raise Unsupported("a field named self")
    yield f"def __init__({', '.join([*params, *(['*', *only] if only else [])])}):"
    yield from body
    yield "    self.__post_init__()" if cls.lookup("__post_init__") is not None else "    pass"


def _tuple(name: str, fields: list[Field]) -> str:
    return f"({''.join(f'{name}.{field.name}, ' for field in fields)})"


def _comparison(name: str, sign: str, fields: list[Field]) -> Iterator[str]:
    yield f"def {name}(self, other):"
    yield "    if other.__class__ is not self.__class__: return NotImplemented"
    yield f"    return {_tuple('self', fields)} {sign} {_tuple('other', fields)}"


def _fields_of(value: Any) -> dict[str, Field]:
    if type(value) is not Instance or not value.cls.fields:
        raise TypeError("should be called on dataclass instances")
    return value.cls.fields


def _converter(wrap: Any) -> Any:
    def convert(value: Any, /) -> Any:
        return wrap([(name, _inner(get_attribute(value, name))) for name in _fields_of(value)])

    def _inner(value: Any) -> Any:
        kind = type(value)
        meter.work(1 << 6)
        if kind is Instance and value.cls.fields:
            return convert(value)
        if kind in (list, tuple):
            return kind(_inner(item) for item in value)
        if kind is dict:
            return {_inner(key): _inner(item) for key, item in value.items()}
        if kind is Instance or kind is NamedTupleValue or kind in DICTS or kind is set:
            raise Unsupported("a copy of this value")
        return value

    return convert


def _fields(value: Any, /) -> tuple[Field, ...]:
    """Returns the fields of a dataclass or of an object of one, of which a program may read what FIELDS allows."""
    cls = value.cls if type(value) is Instance else value
    if type(cls) is not Class or not cls.fields:
        raise Unsupported("the fields of this")
    return tuple(cls.fields.values())


FIELDS[Field] = frozenset({"compare", "init", "name", "repr"})


def _replace(value: Any, /, **changes: Any) -> Any:
    fields = _fields_of(value)
    if any(not field.init for field in fields.values()):
        raise Unsupported("replace() of a field that is not given")
    return value.cls(**{**{name: get_attribute(value, name) for name in fields}, **changes})


DATACLASSES: dict[str, Any] = {
    "FrozenInstanceError": TypeValue(FrozenInstanceError, FrozenInstanceError),
    "asdict": Builtin("asdict", _converter(dict)),
    "astuple": Builtin("astuple", _converter(lambda pairs: tuple(value for _, value in pairs))),
    "dataclass": Builtin("dataclass", _dataclass),
    "field": Builtin("field", Field),
    "fields": Builtin("fields", _fields),
    "replace": Builtin("replace", _replace),
}
