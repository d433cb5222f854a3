"""Items of containers: reads, assigns and deletes container[index]."""

from __future__ import annotations

from array import array
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.measure import (
    DICTS,
    MATCH,
    SIZED,
    NamedTupleValue,
    deque,
    hashable,
    item_bytes,
    to_list,
    type_name,
)
from codezero.evaluate.dryrun.modules import Module
from codezero.evaluate.dryrun.objects import Instance, as_index
from codezero.evaluate.dryrun.type_objects import GENERIC, Annotation, TypeValue
from codezero.evaluate.dryrun.values import Opaque


def get_item(container: Any, index: Any) -> Any:
    kind = type(container)
    if type(index) is Instance and kind in SIZED and kind not in DICTS:
        index = as_index(index)
    if kind in DICTS:
        return container[hashable(index)]
    if kind in SIZED or kind is range:
        if type(index) is slice and kind in (str, bytes, bytearray, list, tuple, NamedTupleValue, array):
            meter.allocate(len(range(*index.indices(len(container)))) * item_bytes(container))
        return container[index]
    if kind is Instance or kind is MATCH:
        return container[index]
    if container is GENERIC:
        return container
    if kind in (TypeValue, Annotation):
        return Annotation()
    if kind is Class and container.members is not None:
        return container.members[hashable(index)]
    if kind in (Class, Module, Opaque):
        raise Unsupported(f"an index into a {kind.__name__.lower()}")
    raise TypeError(f"'{type_name(container)}' object is not subscriptable")


def set_item(container: Any, index: Any, value: Any) -> None:
    kind = type(container)
    meter.left -= 1
    if meter.left < 0:
        meter.refill()
    if kind is list or kind is bytearray:
        if type(index) is slice:
            value = to_list(value) if kind is list else value if isinstance(value, bytes) else bytes(to_list(value))
            meter.allocate(len(value) * item_bytes(container))
            if index.step is None:
                meter.work(len(container))
        elif type(index) is Instance:
            index = as_index(index)
        container[index] = value
    elif kind is array:
        if type(index) is slice:
            meter.allocate((len(container) + len(value) if type(value) is array else 0) << 3)
        container[index] = value
    elif kind in DICTS:
        container[hashable(index)] = value
    elif kind in (deque, Instance):
        container[index] = value
    else:
        raise TypeError(f"'{type_name(container)}' object does not support item assignment")


def delete_item(container: Any, index: Any) -> None:
    kind = type(container)
    if kind in (list, deque, bytearray, array):
        meter.work(len(container))
        del container[as_index(index)]
    elif kind in DICTS or kind is Instance:
        del container[hashable(index)]
    else:
        raise TypeError(f"'{type_name(container)}' object doesn't support item deletion")
