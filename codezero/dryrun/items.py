"""Items of containers: container[index], read, set and deleted."""

from __future__ import annotations

from collections import deque
from typing import Any

from codezero.dryrun.budget import Unsupported, meter
from codezero.dryrun.measure import DICTS, FLAT, MATCH, SIZED, Record, hashable, to_list, type_name
from codezero.dryrun.objects import Class, Instance
from codezero.dryrun.values import Annotation, Module, Opaque, TypeValue


def get_item(container: Any, index: Any) -> Any:
    kind = type(container)
    if kind in DICTS:
        return container[hashable(index)]
    if kind in SIZED or kind is range:
        if type(index) is slice:
            if kind in FLAT and kind not in (list, tuple, Record):
                return container[index]
            if kind is not range:
                meter.allocate(len(range(*index.indices(len(container)))) * (1 if kind in (str, bytes) else 8))
            found = container[index]
            return tuple(found) if kind is Record else found
        return container[index]
    if kind is Instance or kind is MATCH:
        return container[index]
    if kind in (TypeValue, Annotation):
        return Annotation()
    if kind in (Class, Module, Opaque):
        raise Unsupported(f"an index into a {kind.__name__.lower()}")
    raise TypeError(f"'{type_name(container)}' object is not subscriptable")


def set_item(container: Any, index: Any, value: Any) -> None:
    kind = type(container)
    meter.left -= 1
    if meter.left < 0:
        meter.refill()
    if kind is list:
        if type(index) is slice:
            meter.work(len(container))
            value = to_list(value)
        container[index] = value
    elif kind in DICTS:
        container[hashable(index)] = value
    elif kind in (deque, Instance):
        container[index] = value
    else:
        raise TypeError(f"'{type_name(container)}' object does not support item assignment")


def delete_item(container: Any, index: Any) -> None:
    kind = type(container)
    if kind in (list, deque):
        meter.work(len(container))
        del container[index]
    elif kind in DICTS or kind is Instance:
        del container[hashable(index)]
    else:
        raise TypeError(f"'{type_name(container)}' object doesn't support item deletion")
