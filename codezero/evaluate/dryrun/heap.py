"""`heapq` on lists: the standard binary heap, with each comparison charged before the host makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.operators import COMPARE

_FAST = frozenset({int, float})
_less = COMPARE["Lt"]


def _below(a: Any, b: Any) -> Any:
    return a < b if type(a) in _FAST and type(b) in _FAST else _less(a, b)


def _rise(heap: list[Any], top: int, position: int) -> None:
    """Moves the item at `position` up until its parent is not larger, at most to `top`."""
    item = heap[position]
    while position > top:
        parent = (position - 1) >> 1
        if not _below(item, heap[parent]):
            break
        heap[position] = heap[parent]
        position = parent
    heap[position] = item


def _sink(heap: list[Any], position: int) -> None:
    """Moves the item at `position` down to a leaf along the smaller children, then up to its place."""
    end, top, item = len(heap), position, heap[position]
    child = 2 * position + 1
    while child < end:
        meter.work(0)
        if child + 1 < end and not _below(heap[child], heap[child + 1]):
            child += 1
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _rise(heap, top, position)


def _checked(heap: Any) -> list[Any]:
    if type(heap) is Instance and heap.data is not None:
        raise Unsupported("a heap of this type")
    if type(heap) is not list:
        raise TypeError(f"heap argument must be a list, not {type(heap).__name__}")
    return heap


def _check_filled(heap: Any) -> None:
    if not _checked(heap):
        raise IndexError("index out of range")


def _heappush(heap: Any, item: Any, /) -> None:
    _checked(heap).append(item)
    _rise(heap, 0, len(heap) - 1)


def _heappop(heap: Any, /) -> Any:
    _check_filled(heap)
    last = heap.pop()
    if not heap:
        return last
    first, heap[0] = heap[0], last
    _sink(heap, 0)
    return first


def _heapreplace(heap: Any, item: Any, /) -> Any:
    _check_filled(heap)
    first, heap[0] = heap[0], item
    _sink(heap, 0)
    return first


def _heappushpop(heap: Any, item: Any, /) -> Any:
    if _checked(heap) and _below(heap[0], item):
        return _heapreplace(heap, item)
    return item


def _heapify(heap: Any, /) -> None:
    for position in reversed(range(len(_checked(heap)) // 2)):
        _sink(heap, position)


HEAP: dict[str, Callable[..., Any]] = {
    "heapify": _heapify,
    "heappop": _heappop,
    "heappush": _heappush,
    "heappushpop": _heappushpop,
    "heapreplace": _heapreplace,
}
