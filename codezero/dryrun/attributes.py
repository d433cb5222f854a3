"""Attribute access: whitelisted methods of builtin values, and what interpreted classes define.

No host attribute is ever read by a name that comes from a program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.dryrun.budget import Unsupported, meter
from codezero.dryrun.measure import MATCH, PATTERN, Record, type_name
from codezero.dryrun.methods import METHODS
from codezero.dryrun.objects import (
    BoundMethod,
    Cached,
    Class,
    ClassMethod,
    Instance,
    Property,
    StaticMethod,
    Super,
)
from codezero.dryrun.regular import MATCH_FIELDS, PATTERN_FIELDS
from codezero.dryrun.values import Builtin, Function, Module, TypeValue

_MISSING = object()


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def get_attribute(value: Any, name: str) -> Any:
    """value.name. Raises AttributeError where CPython has no such attribute, Stop where it has and we do not."""
    kind = type(value)
    table = METHODS.get(kind)
    if table is not None and name in table:
        return BoundMethod(table[name], value)
    if kind is Instance:
        return _of_instance(value, name)
    if kind is Module:
        return _of_module(value, name)
    if kind is Class:
        return _of_class(value, name)
    if kind is TypeValue:
        return _of_type(value, name)
    if kind is Super:
        return _of_super(value, name)
    if kind is Function:
        if name == "__name__":
            return value.code.name
        if name in value.attrs:
            return value.attrs[name]
    elif kind is Builtin and name == "__name__":
        return value.name
    elif kind is Record and name in value.kind.fields:
        return value[value.kind.fields.index(name)]
    elif (kind is MATCH and name in MATCH_FIELDS) or (kind is PATTERN and name in PATTERN_FIELDS):
        return getattr(value, name)
    elif isinstance(value, BaseException) and name in ("args", "value"):
        return value.args if name == "args" else getattr(value, "value", None)
    elif kind in (Builtin, BoundMethod) and not is_dunder(name):
        raise AttributeError(f"'builtin_function_or_method' object has no attribute '{name}'")
    elif kind is Property and name == "setter":
        return Builtin("setter", lambda function: Property(value.getter, function))
    return _missing(value, name)


_TRANSPARENT = (Instance, Function, Class)
"""Our kinds of values whose attributes are all known, but for dunder ones."""


def _missing(value: Any, name: str) -> Any:
    """Raises AttributeError if the host's value has no such attribute either, else Stop."""
    kind = type(value)
    known = kind in _TRANSPARENT or (kind.__module__ in ("builtins", "collections") and not hasattr(kind, name))
    if is_dunder(name) or not known:
        raise Unsupported(f"attribute {name} of a {type_name(value)}")
    raise AttributeError(f"'{type_name(value)}' object has no attribute '{name}'")


def _of_instance(value: Instance, name: str) -> Any:
    found = value.cls.lookup(name, _MISSING)
    if type(found) is Property:
        return found.getter(value)
    if name in value.attrs:
        return value.attrs[name]
    if found is not _MISSING:
        return _bound(found, value, value.cls)
    if name == "__class__":
        return value.cls
    if name == "args" and value.cls.error is not None:
        return value.args
    return _missing(value, name)


def _bound(found: Any, owner: Any, cls: Class) -> Any:
    kind = type(found)
    if kind is Function or kind is Cached:
        return BoundMethod(found, owner)
    if kind is StaticMethod:
        return found.function
    if kind is ClassMethod:
        return BoundMethod(found.function, cls)
    return found


def _of_class(value: Class, name: str) -> Any:
    found = value.lookup(name, _MISSING)
    if found is _MISSING:
        if name == "__name__":
            return value.name
        if name == "__init__":
            return Builtin("__init__", _base_init)
        if is_dunder(name) or value.error is not None:
            raise Unsupported(f"attribute {name} of a class")
        raise AttributeError(f"type object '{value.name}' has no attribute '{name}'")
    if type(found) is Property:
        raise Unsupported("a property of a class")
    return found if type(found) in (Function, Cached) else _bound(found, None, value)


def _of_super(value: Super, name: str) -> Any:
    for cls in value.cls.mro[1:]:
        if name in cls.namespace:
            found = cls.namespace[name]
            if type(found) is Property:
                return found.getter(value.instance)
            return _bound(found, value.instance, value.instance.cls)
    if name == "__init__":
        return BoundMethod(_base_init, value.instance)
    if name == "__str__" and value.cls.error is not None:
        error = value.cls.error
        return Builtin(name, lambda: str(error(*value.instance.args)))
    if is_dunder(name):
        raise Unsupported(f"attribute {name} of super()")
    raise AttributeError(f"'super' object has no attribute '{name}'")


def _base_init(instance: Any, /, *args: Any, **kwargs: Any) -> None:
    """What the __init__ of `object` or of a builtin exception does."""
    if type(instance) is not Instance:
        raise Unsupported("__init__ of a builtin")
    if instance.cls.error is not None and not kwargs:
        instance.args = args
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
            raise TypeError(f"descriptor '{name}' for '{kind.name}' objects doesn't apply to '{type_name(value)}'")
        return METHODS[type(value)][name](value, *args, **kwargs)

    return call


def set_attribute(value: Any, name: str, new: Any) -> None:
    """value.name = new."""
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
        else:
            value.attrs[name] = new
    elif kind is Class:
        value.namespace[name] = new
    elif kind is Function:
        value.attrs[name] = new
    else:
        _refuse_change(value, name)


def delete_attribute(value: Any, name: str) -> None:
    if type(value) is not Instance:
        _refuse_change(value, name)
    if name not in value.attrs:
        raise AttributeError(name)
    del value.attrs[name]


def _refuse_change(value: Any, name: str) -> None:
    if type(value).__module__ == "builtins" and not isinstance(value, BaseException):
        raise AttributeError(f"'{type_name(value)}' object has no attribute '{name}'")
    raise Unsupported(f"setting an attribute of a {type_name(value)}")
