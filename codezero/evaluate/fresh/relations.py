"""Relations between the arguments of a call that hold in every visible one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

Arguments = tuple[Any, ...]
_Relation = Callable[[Any, Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(values: Any) -> bool:
    return isinstance(values, list | tuple) and bool(values) and all(map(_is_number, values))


def _is_length(number: Any, values: Any) -> bool:
    return bool(number == len(values))


def _as_long(one: Any, other: Any) -> bool:
    return len(one) == len(other)


def _within(one: Any, other: Any) -> bool:
    return one in other


_RELATIONS: tuple[_Relation, ...] = (
    _is_length,
    _as_long,
    _within,
    lambda number, values: _is_number(number) and number <= len(values),
    lambda number, values: _is_number(number) and number < len(values),
    lambda number, values: _is_number(number) and number == len(values) - 1,
    lambda one, other: _is_number(one) and one <= other,
    lambda one, other: _is_number(one) and one < other,
    lambda one, other: _is_number(one) and other % one == 0,
    lambda one, other: len(one) <= len(other),
    lambda one, other: len(one) < len(other),
    lambda one, other: isinstance(one, list | tuple | set) and all(item in other for item in one),
    lambda number, values: _numbers(values) and number <= max(values),
    lambda number, values: _numbers(values) and number >= min(values),
    lambda number, values: _numbers(values) and number <= sum(values),
    lambda number, values: _numbers(values) and number >= max(values),
    lambda one, other: one not in other,
    lambda one, other: one != other,
    lambda one, other: sorted(one) == sorted(other),
    lambda number, rows: isinstance(rows[0], list | tuple) and number < min(map(len, rows)),
    lambda number, rows: isinstance(rows[0], list | tuple) and number == len(rows[0]),
)

Bond = tuple[_Relation, int, int]


def bonds_of(inputs: Sequence[Arguments]) -> list[Bond]:
    """Returns the relations that hold in all of the inputs, with the positions of both arguments."""
    places = permutations(range(len(inputs[0])), 2)
    return [(r, i, j) for i, j in places for r in _RELATIONS if all(_holds((r, i, j), one) for one in inputs)]


def keep(bonds: Sequence[Bond], arguments: Arguments) -> bool:
    return all(_holds(bond, arguments) for bond in bonds)


def restored(bonds: Sequence[Bond], arguments: Arguments, rng: random.Random) -> Arguments:
    """Returns the arguments, changed so that the relations hold, which random changes rarely achieve."""
    made = list(arguments)
    for relation, i, j in bonds:
        one, other = made[i], made[j]
        if _holds((relation, 0, 1), (one, other)):
            continue
        if relation is _is_length:
            made[i] = len(other)
        elif relation is _within and other and isinstance(other, str | list | tuple | set | dict):
            made[i] = rng.choice(sorted(other, key=repr))
        elif relation is _as_long and isinstance(one, list | tuple | str):
            made[i] = one[: len(other)]
    return tuple(made)


def _holds(bond: Bond, arguments: Arguments) -> bool:
    relation, i, j = bond
    try:
        return relation(arguments[i], arguments[j])
    except (TypeError, ValueError, LookupError, ArithmeticError):
        return False
