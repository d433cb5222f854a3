"""Sorting; its comparisons are charged before the host makes them."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.measure import FEW, SCALARS, long_parts, measure
from codezero.evaluate.dryrun.objects import Instance


def sort_cost(items: list[Any]) -> None:
    """Charges for the comparisons of a sort of `items`."""
    if SCALARS.issuperset(map(type, items)):
        parts = len(items) + (long_parts(items) if len(items) > FEW else 0)
    else:
        parts = measure(items)
    meter.work(parts * max(len(items).bit_length(), 1) << 2)


def keys_of(items: list[Any], key: Any) -> list[Any]:
    """Returns the keys that a sort compares, and charges for the comparisons."""
    keys = items if key is None else [key(item) for item in items]
    sort_cost(keys)
    return keys


def sorted_items(items: list[Any], key: Any, reverse: Any) -> list[Any]:
    """Returns sorted(items, key=key, reverse=reverse)."""
    if type(reverse) is Instance:
        raise Unsupported("a sort by an object as `reverse`")
    keys = keys_of(items, key)
    if key is None:
        return sorted(items, reverse=reverse)
    order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
    return [items[index] for index in order]
