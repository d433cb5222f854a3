"""Attribute access: allowed methods of builtin values, and attributes of interpreted classes.

No attribute of a host object is read by a name from a program unless FIELDS allows the name.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.descriptors import (
    BoundMethod,
    Cached,
    CachedProperty,
    ClassMethod,
    Property,
    StaticMethod,
    Super,
)
from codezero.evaluate.dryrun.library_decimal import Context
from codezero.evaluate.dryrun.library_fractions import Fraction
from codezero.evaluate.dryrun.measure import NamedTupleValue, type_name
from codezero.evaluate.dryrun.methods import METHODS, RECORD_METHODS
from codezero.evaluate.dryrun.modules import Module, PerCase
from codezero.evaluate.dryrun.named_tuples import NamedTuple
from codezero.evaluate.dryrun.objects import OF_DATA, Instance
from codezero.evaluate.dryrun.scope import is_dunder
from codezero.evaluate.dryrun.text import text_of
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.type_values import TYPES, type_of
from codezero.evaluate.dryrun.values import FIELDS, Builtin, Function

_MISSING = object()


def get_attribute(value: Any, name: str) -> Any:
    """Returns value.name. Raises AttributeError if CPython has no such attribute, Stop if it is not interpreted."""
    kind = type(value)
    table = METHODS.get(kind)
    if table is not None and name in table:
        return BoundMethod(table[name], value)
    if kind is Instance:
        try:
            return _of_instance(value, name)
        except AttributeError:
            hook = value.cls.lookup("__getattr__")
            if hook is None:
                raise
            return hook(value, name)
    if kind is Module:
        return _of_module(value, name)
    if kind is Class:
        return _of_class(value, name)
    if kind is TypeValue:
        return _of_type(value, name)
    if kind is Super:
        return _of_super(value, name)
    if kind is NamedTuple:
        return _of_named_tuple(value, name)
    if kind is Function:
        if name in value.attrs:
            return value.attrs[name]
        if name == "__name__":
            return value.code.name
    elif kind is Builtin and name == "__name__":
        return value.name
    elif kind is NamedTupleValue:
        return _of_record(value, name)
    elif name in FIELDS.get(kind, ()):
        return getattr(value, name)
    elif isinstance(value, BaseException) and name in ("args", "value"):
        return value.args if name == "args" else getattr(value, "value", None)
    elif kind in (Builtin, BoundMethod) and not is_dunder(name):
        raise AttributeError(f"'builtin_function_or_method' object has no attribute '{name}'")
    elif name == "__class__":
        return type_of(value)
    elif kind is Property and name == "setter":
        return Builtin("setter", lambda function: Property(value.getter, function))
    return _missing(value, name)


def _missing(value: Any, name: str) -> Any:
    """Raises AttributeError if the host value has no such attribute either, else Stop."""
    kind = type(value)
    is_host = kind.__module__ in ("builtins", "collections")
    known = kind in (Instance, Function) or (is_host and not hasattr(kind, name))
    if is_dunder(name) or not known or (kind is Instance and _may_have(value, name)):
        raise Unsupported(f"attribute {name} of a {type_name(value)}")
    raise AttributeError(f"'{type_name(value)}' object has no attribute '{name}'")


def _may_have(value: Instance, name: str) -> bool:
    """Returns True if CPython may have the attribute because of a base class that is interpreted in part only."""
    host = value.cls.error or (None if value.data is None else type(value.data))
    return hasattr(host, name) or value.cls.derives_from_library


def _of_instance(value: Instance, name: str) -> Any:
    found = value.cls.lookup(name, _MISSING)
    if type(found) is Property:
        return found.getter(value)
    if name in value.attrs:
        return value.attrs[name]
    if type(found) is CachedProperty:
        made = value.attrs[name] = found.getter(value)
        return made
    if found is not _MISSING:
        return _bound(found, value, value.cls)
    if name == "__class__":
        return type_of(value)
    cls = value.cls
    if name == "__dict__" and cls.slots is None and cls.members is None and not cls.derives_from_library:
        return value.attrs
    if name == "args" and value.cls.error is not None:
        return value.args
    if value.data is not None and name in METHODS[type(value.data)]:
        return BoundMethod(METHODS[type(value.data)][name], value.data)
    return _missing(value, name)


def _bound(found: Any, owner: Any, cls: Any) -> Any:
    kind = type(found)
    if kind is Function or kind is Cached:
        return BoundMethod(found, owner)
    if kind is StaticMethod:
        return found.function
    if kind is ClassMethod:
        return BoundMethod(found.function, cls)
    return found


def _of_record(value: NamedTupleValue, name: str) -> Any:
    if name in value.kind.fields:
        return value[value.kind.fields.index(name)]
    found = value.kind.namespace.get(name)
    if type(found) is Property:
        return found.getter(value)
    if found is None:
        return BoundMethod(RECORD_METHODS[name], value) if name in RECORD_METHODS else _missing(value, name)
    return _bound(found, value, value.kind)


def _of_named_tuple(value: NamedTuple, name: str) -> Any:
    found = value.namespace.get(name)
    if name == "_fields":
        return value.fields
    if found is None or type(found) is Property:
        raise Unsupported(f"attribute {name} of a named tuple")
    return found if type(found) is Function else _bound(found, None, value)


def _of_class(value: Class, name: str) -> Any:
    found = value.lookup(name, _MISSING)
    if found is _MISSING:
        if name in ("__name__", "__qualname__"):
            return value.name if name == "__name__" else value.qualname
        if name == "__init__":
            return Builtin("__init__", _base_init)
        if is_dunder(name) or value.builtin is not None or value.derives_from_library or hasattr(ABCMeta, name):
            raise Unsupported(f"attribute {name} of a class")
        raise AttributeError(f"type object '{value.name}' has no attribute '{name}'")
    if type(found) is Property:
        raise Unsupported("a property of a class")
    return found if type(found) in (Function, Cached, CachedProperty) else _bound(found, None, value)


def _of_super(value: Super, name: str) -> Any:
    if isinstance(value.instance, Class):
        if name != "__new__":
            raise Unsupported(f"attribute {name} of super() in a method of a class")
        return next((maker for cls in value.bases() if (maker := cls.maker())), TYPES["object"].attrs["__new__"])
    for cls in value.bases():
        if name in cls.namespace:
            found = cls.namespace[name]
            if type(found) is Property:
                return found.getter(value.instance)
            return _bound(found, value.instance, value.instance.cls)
    if name == "__init__":
        return BoundMethod(_base_init, value.instance)
    data = value.instance.data
    if data is not None and (name in METHODS[type(data)] or name in OF_DATA):
        return BoundMethod(OF_DATA.get(name, lambda of, *args: METHODS[type(data)][name](data, *args)), value.instance)
    if name == "__str__" and value.cls.error is not None:
        error, args = value.cls.error, value.instance.args
        return Builtin(name, lambda: text_of(error(*args)))
    if is_dunder(name):
        raise Unsupported(f"attribute {name} of super()")
    raise AttributeError(f"'super' object has no attribute '{name}'")


def _base_init(instance: Any, /, *args: Any, **kwargs: Any) -> None:
    """The `__init__` of `object` and of builtin exceptions."""
    if type(instance) is not Instance:
        raise Unsupported("__init__ of a builtin")
    if instance.cls.error is not None and not kwargs:
        instance.args = args
    elif instance.data is not None and instance.cls.builtin is not None:
        instance.data = instance.cls.builtin(*args, **kwargs)
    elif args or kwargs:
        raise TypeError("object.__init__() takes exactly one argument (the instance to initialize)")


def _of_module(value: Module, name: str) -> Any:
    try:
        return value.member(name)
    except KeyError:
        if is_dunder(name):
            raise Unsupported(f"attribute {name} of a module") from None
        raise AttributeError(f"module '{value.name}' has no attribute '{name}'") from None


def _of_type(value: TypeValue, name: str) -> Any:
    if name == "__name__":
        return value.name
    if name in value.attrs:
        return value.attrs[name]
    if name == "__init__" and issubclass(value.host, BaseException):
        return Builtin(name, _base_init)
    if name in METHODS.get(value.host, {}):
        return Builtin(name, _unbound(value, name))
    if is_dunder(name) or hasattr(value.host, name):
        raise Unsupported(f"{value.name}.{name}")
    raise AttributeError(f"type object '{value.name}' has no attribute '{name}'")


def _unbound(kind: TypeValue, name: str) -> Callable[..., Any]:
    def call(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, kind.host):
            raise TypeError(
                f"descriptor '{name}' for '{kind.name}' objects doesn't apply to a '{type_name(value)}' object"
            )
        return METHODS[kind.host][name](value, *args, **kwargs)

    return call


def set_attribute(value: Any, name: str, new: Any) -> None:
    """Performs value.name = new."""
    kind = type(value)
    meter.left -= 1
    if meter.left < 0:
        meter.refill()
    if is_dunder(name):
        raise Unsupported(f"setting {name}")
    if kind is Instance:
        found = value.cls.lookup(name)
        if type(found) is Property:
            if found.setter is None:
                raise AttributeError(f"property '{name}' of '{value.cls.name}' object has no setter")
            found.setter(value, new)
        elif value.cls.frozen:
            _refuse_frozen(value, f"cannot assign to field {name!r}")
        elif value.cls.slots is not None and name not in value.cls.slots:
            raise AttributeError(f"'{value.cls.name}' object has no attribute '{name}'")
        else:
            value.attrs[name] = new
    elif kind is Class and not value.trusted and value.members is None:
        value.namespace[name] = new
    elif kind is Function and not value.code.fixed:
        value.attrs[name] = new
    elif kind is Module and type(value.members.get(name)) is PerCase:
        value.members[name].put(new)
    elif kind is Context and name in FIELDS[kind]:
        setattr(value, name, new)
    else:
        _refuse_change(value, name)


def delete_attribute(value: Any, name: str) -> None:
    if type(value) is not Instance:
        _refuse_change(value, name)
    if value.cls.frozen:
        _refuse_frozen(value, f"cannot delete field {name!r}")
    if name not in value.attrs:
        raise AttributeError(name)
    del value.attrs[name]


def _refuse_frozen(value: Instance, text: str) -> None:
    if value.cls.members is not None:
        raise Unsupported("a change of a member of an enumeration")
    raise FrozenInstanceError(text)


def _refuse_change(value: Any, name: str) -> None:
    if type(value) is Fraction and name in FIELDS[Fraction]:
        raise AttributeError(f"property '{name}' of 'Fraction' object has no setter")
    if name in FIELDS.get(type(value), ()):
        raise Unsupported(f"setting the attribute {name} of a {type_name(value)}")
    if type(value).__module__ == "builtins" and not isinstance(value, BaseException):
        raise AttributeError(f"'{type_name(value)}' object has no attribute '{name}'")
    raise Unsupported(f"setting an attribute of a {type_name(value)}")
