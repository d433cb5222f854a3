"""Named tuples: `collections.namedtuple` and `typing.NamedTuple`."""

from __future__ import annotations

import keyword
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.classes import MAX_BASES
from codezero.evaluate.dryrun.measure import NamedTupleValue, to_list
from codezero.evaluate.dryrun.text import repr_of
from codezero.evaluate.dryrun.type_objects import Type
from codezero.evaluate.dryrun.values import Hidden

MAX_FIELDS = 100


class NamedTuple(Type, Hidden):
    """A type made by `namedtuple`, or a class that derives from one (`base`) or from `typing.NamedTuple`."""

    __slots__ = ("defaults", "fields", "mro", "name", "namespace")

    def __init__(
        self,
        name: str,
        fields: tuple[str, ...],
        defaults: tuple[Any, ...],
        namespace: dict[str, Any] | None = None,
        base: NamedTuple | None = None,
    ) -> None:
        """Raises Stop for too long a chain of bases."""
        self.name, self.fields, self.defaults = name, fields, defaults
        self.namespace: dict[str, Any] = namespace or {}
        """Methods and other names that its class body, or a base's, binds."""
        self.mro: tuple[NamedTuple, ...] = (self,)
        """The class and its bases, the nearest first."""
        if base is not None:
            meter.work((len(base.namespace) + len(base.mro)) << 6)
            self.namespace = {**base.namespace, **self.namespace}
            self.mro = (self, *base.mro)
        if len(self.mro) > MAX_BASES:
            raise Stop("inheritance too deep")

    def __call__(self, /, *args: Any, **kwargs: Any) -> NamedTupleValue:
        meter.work(len(self.fields) << 4)
        values = dict(zip(self.fields, args, strict=False))
        if len(args) > len(self.fields) or kwargs.keys() - set(self.fields) or values.keys() & kwargs.keys():
            raise TypeError(f"{self.name}() got arguments that do not fit its fields")
        first = len(self.fields) - len(self.defaults)
        values = {**dict(zip(self.fields[first:], self.defaults, strict=True)), **values, **kwargs}
        if len(values) < len(self.fields):
            raise TypeError(f"{self.name}() missing required positional arguments")
        record = NamedTupleValue(values[field] for field in self.fields)
        record.kind = self
        return record


def namedtuple(typename: Any, field_names: Any, *, rename: Any = False, defaults: Any = ()) -> NamedTuple:
    names = field_names.replace(",", " ").split() if type(field_names) is str else to_list(field_names)
    if rename or len(names) > MAX_FIELDS or type(typename) is not str:
        raise Unsupported("this namedtuple")
    for name in names:
        if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"Type names and field names must be valid identifiers: {repr_of(name)}")
    if len(set(names)) < len(names):
        raise ValueError("Encountered duplicate field name")
    return NamedTuple(typename, tuple(names), tuple(to_list(defaults if defaults is not None else ())))


NAMED_TUPLE = NamedTuple("NamedTuple", (), ())
"""The base class `typing.NamedTuple`."""
