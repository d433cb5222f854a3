"""The results of class statements: classes, enumerations and named tuples."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.classes import Class, abstract_names
from codezero.evaluate.dryrun.descriptors import CachedProperty, ClassMethod, Property, StaticMethod
from codezero.evaluate.dryrun.named_tuples import MAX_FIELDS, NAMED_TUPLE, NamedTuple
from codezero.evaluate.dryrun.objects import DEFINABLE, Instance
from codezero.evaluate.dryrun.operators import equal
from codezero.evaluate.dryrun.scope import is_dunder
from codezero.evaluate.dryrun.text import repr_of
from codezero.evaluate.dryrun.type_objects import GENERIC, TypeValue
from codezero.evaluate.dryrun.type_values import TYPES
from codezero.evaluate.dryrun.values import Builtin, Function, Hidden


def _member_text(member: Instance) -> str:
    return f"{member.cls.name}.{member.attrs['_name_']}"


def _member_repr(member: Instance) -> str:
    return f"<{_member_text(member)}: {repr_of(member.attrs['_value_'])}>"


def _integer_text(member: Instance) -> str:
    if sys.version_info < (3, 11):
        raise Unsupported("the text of an IntEnum")
    return str(member.data)


ABC = Class("ABC", namespace={"__slots__": ()}, trusted=True)
ENUM = Class("Enum", namespace={"__repr__": _member_repr, "__str__": _member_text}, trusted=True)
ENUM.members = {}
INT_ENUM = Class("IntEnum", (ENUM, TYPES["int"]), {"__str__": _integer_text}, trusted=True)


def _by_names(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs:
        raise ValueError(f"{repr_of(args[0])} is not a valid Enum")
    raise Unsupported("an enumeration made by a call")


ENUM.call = INT_ENUM.call = _by_names
_DERIVABLE = (TYPES["dict"], TYPES["list"])
_NO_MEMBERS = (Function, Property, CachedProperty, StaticMethod, ClassMethod)


class Auto(Hidden):
    """The result of `enum.auto()`."""

    __slots__ = ()


def make_class(
    name: str, bases: Iterable[Any], namespace: dict[str, Any], annotated: dict[str, bool], trusted: bool, qualname: str
) -> Any:
    """Returns the class of a class statement, whose body binds `namespace` and annotates names (True: class variable).

    Raises Stop for a kind of class that is not interpreted.
    """
    meter.work((1 + len(namespace)) << 6)
    for key in namespace:
        if is_dunder(key) and key not in DEFINABLE:
            raise Unsupported(f"a class with {key[:40]}")
    parents = [base for base in bases if base is not TYPES["object"] and base is not GENERIC]
    if any(type(base) is NamedTuple for base in parents):
        return _named_tuple(name, parents, namespace, annotated)
    for base in parents:
        is_error = type(base) is TypeValue and issubclass(base.host, BaseException)
        if not is_error and type(base) is not Class and base not in _DERIVABLE:
            raise Unsupported("a class with these bases")
        if type(base) is Class and base.members:
            raise TypeError(f"<enum '{name}'> cannot extend <enum '{base.name}'>")
        if type(base) is Class and base.lookup("__init_subclass__") is not None:
            raise Unsupported("__init_subclass__")
    cls = Class(name, parents, namespace, trusted, qualname)
    if cls.maker() is not None and (cls.builtin is not None or cls.members is not None):
        raise Unsupported("__new__ of a class that derives from the library's")
    if cls.members is not None:
        _make_members(cls)
    if ABC in cls.mro:
        cls.abstract = abstract_names(cls)
    cls.annotated = annotated
    return cls


def _named_tuple(name: str, bases: list[Any], namespace: dict[str, Any], annotated: dict[str, bool]) -> NamedTuple:
    if len(bases) > 1 or any(key.startswith("__") and key not in ("__slots__", "__doc__") for key in namespace):
        raise Unsupported("this class of named tuples")
    (base,) = bases
    if base is not NAMED_TUPLE:
        return NamedTuple(name, base.fields, base.defaults, namespace, base)
    fields = tuple(annotated)
    if any(field.startswith("_") for field in fields):
        raise ValueError("Field names cannot start with an underscore")
    if len(fields) > MAX_FIELDS:
        raise Unsupported("this class of named tuples")
    with_default = [field for field in fields if field in namespace]
    if with_default != list(fields[len(fields) - len(with_default) :]):
        raise TypeError("Non-default namedtuple field cannot follow default fields")
    defaults = tuple(namespace.pop(field) for field in with_default)
    return NamedTuple(name, fields, defaults, namespace, NAMED_TUPLE)


class _EnumNames(dict[str, Any]):
    """The names that the body of an enumeration binds, with a number in place of each `auto()`. Raises TypeError like
    CPython where one is bound again."""

    last = 0

    def __setitem__(self, name: str, value: Any) -> None:
        if type(value) is Auto:
            value = self.last + 1
        if type(value) is int and not name.startswith("_"):
            self.last = max(self.last, value)
        both = (value, self.get(name))
        if name in self and not name.startswith("_") and not all(isinstance(one, _NO_MEMBERS) for one in both):
            raise TypeError(f"{name!r} already defined")
        super().__setitem__(name, value)


def names_of_body(bases: Iterable[Any]) -> dict[str, Any]:
    """Returns the empty namespace of the body of a class with these bases."""
    is_enum = any(type(base) is Class and base.members is not None for base in bases)
    return _EnumNames() if is_enum else {}


def _make_members(cls: Class) -> None:
    """Makes the members of an enumeration from the names that its body binds; equal values are aliases of the first."""
    cls.members = {}
    init = cls.lookup("__init__")
    for name, value in list(cls.namespace.items()):
        if name.startswith("_") or isinstance(value, _NO_MEMBERS):
            if name.startswith("_") and not name.startswith("__"):
                raise Unsupported("a private name in an enumeration")
            continue
        if type(value) is not int and cls.builtin is not None:
            raise Unsupported("this value of an IntEnum")
        member = next((m for m in cls.members.values() if equal(m.attrs["_value_"], value)), None)
        if member is None:
            member = cls.new()
            if cls.builtin is not None:
                member.data = value
            member.attrs.update({"_name_": name, "_value_": value, "name": name, "value": value})
            if init is not None:
                init(member, *(value if type(value) is tuple else (value,)))
        cls.members[name] = cls.namespace[name] = member
    cls.frozen = True

    def of_value(value: Any, /) -> Instance:
        for member in cls.distinct_members():
            if value is member or equal(member.attrs["_value_"], value):
                return member
        raise ValueError(f"{repr_of(value)} is not a valid {cls.qualname}")

    cls.call = of_value


def _abstract(function: Any, /) -> Any:
    if type(function) is not Function or function.code.fixed:
        raise Unsupported("abstractmethod of this")
    function.attrs["__isabstractmethod__"] = True
    return function


def _unique(enumeration: Any, /) -> Any:
    if type(enumeration) is not Class or enumeration.members is None:
        raise Unsupported("unique of this")
    if len(enumeration.distinct_members()) < len(enumeration.members):
        raise ValueError(f"duplicate values found in <enum '{enumeration.name}'>")
    return enumeration


ABC_MODULE: dict[str, Any] = {"ABC": ABC, "ABCMeta": ABC, "abstractmethod": Builtin("abstractmethod", _abstract)}
ENUM_MODULE: dict[str, Any] = {
    "Enum": ENUM,
    "IntEnum": INT_ENUM,
    "auto": Builtin("auto", Auto),
    "unique": Builtin("unique", _unique),
}
