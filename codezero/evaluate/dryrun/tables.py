"""Filling of sets and dicts, charged for hashes and comparisons: keys chosen to collide take quadratic time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.measure import ATOMS, DICTS, FEW, hashable, iterate, measure, to_list
from codezero.evaluate.dryrun.objects import Instance

_CHUNK = 256
_ENTRY = 64
"""Bytes charged for an entry of a set or dict."""


def hashed_items(items: Any) -> list[Any]:
    """Returns a list of the items for a set or dict, and charges for their hashes."""
    found = to_list(items)
    if not ATOMS.issuperset(map(type, found)):
        measure(found)
    return found


def in_pieces(items: list[Any], table: Any) -> Iterator[list[Any]]:
    """Yields the items in chunks for `table`; after each, checks the clock and charges for the table's growth."""
    for start in range(0, len(items), _CHUNK):
        size = len(table)
        yield items[start : start + _CHUNK]
        meter.allocate((_CHUNK << 3) + (len(table) - size) * _ENTRY)


def dict_from_keys(kind: Any, keys: Any, value: Any) -> Any:
    """Returns kind.fromkeys(keys, value)."""
    result = kind()
    for piece in in_pieces(hashed_items(keys), result):
        result.update(dict.fromkeys(piece, value))
    return result


def new_set(items: Any = (), /) -> set[Any]:
    """Returns a set of the items."""
    if type(items) in (set, frozenset, dict):
        table_cost(items)
        return set(items)
    result: set[Any] = set()
    for piece in in_pieces(hashed_items(items), result):
        result.update(piece)
    return result


def new_frozenset(items: Any = (), /) -> frozenset[Any]:
    """Returns a frozenset of the items, which keep the order that CPython gives them."""
    if type(items) is frozenset:
        return items
    return frozenset(set_operand(items, frozenset()))


def set_operand(items: Any, table: Any) -> Any:
    """Returns an argument for a host method of the set `table`, which takes these items in the order of CPython, and
    charges for the call. Each sort of argument gives another order: a set, a plain dict, any other iterable."""
    if type(items) in (set, frozenset, dict):
        table_cost(items)
        return items
    found = hashed_items(items)
    looked_up: set[Any] = set()
    for piece in in_pieces(found, looked_up):
        looked_up.update(piece)
        if len(found) > _CHUNK:
            table.intersection(piece)  # the same look-ups as those of the call, but in pieces
    return found


def folded_set(items: list[Any]) -> frozenset[Any]:
    """Returns the constant of a compiled set of constants. CPython makes a frozenset of one when it compiles it:
    https://github.com/python/cpython/blob/3.11/Objects/codeobject.c, `_PyCode_ConstantKey`."""
    return frozenset(list(frozenset(items)))


def update_dict(target: Any, source: Any) -> None:
    """Performs target.update(source) with a plain mapping or pairs. Raises the host's errors for anything else."""
    if type(source) is Instance and type(source.data) is dict:
        source = source.data
    elif type(source) is Instance and source.cls.owner("keys") is not None:
        raise Unsupported("the items of a mapping of the program's own")
    if type(source) in DICTS:
        table_cost(source)
        target.update(source)
        return
    for number, pair in enumerate(iterate(source)):
        meter.work(0)
        try:
            items = to_list(pair)
        except TypeError:
            raise TypeError(f"cannot convert dictionary update sequence element #{number} to a sequence") from None
        if len(items) != 2:
            raise ValueError(f"dictionary update sequence element #{number} has length {len(items)}; 2 is required")
        target[hashable(items[0])] = items[1]


def table_cost(table: Any) -> None:
    """Charges for the insertion of all keys of a set or dict into another, or for their lookup."""
    meter.allocate(len(table) * _ENTRY)
    if len(table) > FEW:
        measure(table.keys() if type(table) in DICTS else table)
