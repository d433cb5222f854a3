"""`isinstance` and `issubclass`."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.measure import ATOMS, SIZED, NamedTupleValue
from codezero.evaluate.dryrun.named_tuples import NamedTuple
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.type_objects import Annotation, TypeValue, Union
from codezero.evaluate.dryrun.type_values import type_of
from codezero.evaluate.dryrun.values import Builtin, Opaque, charged

_OF_HOST = ATOMS | SIZED | {range}
"""Types of values whose abstract base classes are those of their host type."""


def is_instance(value: Any, spec: Any, /) -> bool:
    """Returns isinstance(value, spec)."""
    if type(spec) is tuple:
        return any(is_instance(value, part) for part in charged(spec))
    if type(spec) is Class:
        return type(value) is Instance and spec in value.cls.mro
    if type(spec) is TypeValue:
        if spec.host is object:
            return True
        if spec.host is type:
            return type(value) in (Class, TypeValue, NamedTuple)
        if type(value) is Instance:
            return value.cls.builtin is not None and issubclass(value.cls.builtin.host, spec.host)
        return isinstance(value, spec.host)
    if type(spec) is NamedTuple:
        return type(value) is NamedTupleValue and spec in value.kind.mro
    if type(spec) is Union:
        return any(is_instance(value, type_of(None) if part is None else part) for part in charged(spec.parts))
    if type(spec) is Annotation and spec.host is not None and type(value) in _OF_HOST:
        return isinstance(value, spec.host)
    if type(spec) in (Annotation, Opaque, Builtin):
        raise Unsupported("isinstance with this type")
    raise TypeError("isinstance() arg 2 must be a type, a tuple of types, or a union")


def is_subclass(cls: Any, spec: Any, /) -> bool:
    """Returns issubclass(cls, spec)."""
    if type(spec) is tuple:
        return any(is_subclass(cls, part) for part in charged(spec))
    if type(cls) is Class:
        if type(spec) is Class:
            return spec in cls.mro
        return type(spec) is TypeValue and (
            spec.host is object or bool(cls.builtin and issubclass(cls.builtin.host, spec.host))
        )
    if type(cls) is TypeValue and type(spec) is TypeValue:
        return issubclass(cls.host, spec.host)
    raise Unsupported("issubclass with these types")
