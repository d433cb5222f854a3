"""The order of sets, which depends on chance where an item's hash does: on the seed of the hashes of text, or on an
address.

A program that takes such a set item by item is run twice, with the set's order and with the reverse of it: what comes
to the same both times, as most programs do, does not depend on the order.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from codezero.evaluate.dryrun.budget import meter

_BY_VALUE = frozenset({int, float, bool, complex})
_LOOKED_AT = 4
"""Items that are looked at: those of a set are of one sort as a rule, and a loop may take the first of a large one."""
_WIDEST = 8


def is_fixed(item: Any) -> bool:
    """Returns True for a number or a small tuple of numbers, whose hash is the same in each process."""
    return (
        type(item) in _BY_VALUE
        or isinstance(item, Decimal | Fraction)
        or (type(item) is tuple and len(item) <= _WIDEST and _BY_VALUE.issuperset(map(type, item)))
    )


def in_order(table: Collection[Any]) -> Collection[Any]:
    """Returns the items of a set in the order of this run, and notes that there may be another."""
    if len(table) < 2 or all(map(is_fixed, islice(table, _LOOKED_AT))):
        return table
    meter.unordered = True
    if not meter.reordered:
        return table
    meter.allocate(len(table) * 8)
    return list(table)[::-1]


def pop_first(table: set[Any]) -> Any:
    """Returns table.pop()."""
    items = in_order(table)
    if items is table:
        return table.pop()
    first = next(iter(items))
    table.remove(first)
    return first


def text_in_order(table: Collection[Any]) -> str:
    """Returns repr(table) of a set. The order of sets within other values stays."""
    items = in_order(table)
    if items is table:
        return repr(table)
    text = f"{{{', '.join(map(repr, items))}}}"
    return text if type(table) is set else f"frozenset({text})"
