"""Makes mutants of visible inputs that keep the properties shared by all of these."""

from __future__ import annotations

import math
import random
import string
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

from codezero.evaluate.fresh.facts import ascending, descending, is_square, limits_of
from codezero.evaluate.fresh.relations import Arguments, bonds_of, keep, restored
from codezero.evaluate.fresh.shape import Shape, shape_of

TRIES = 40
"""The most tries for each requested mutant."""
_MAX_CHANGES = 3
_NEW_CHAR = 0.3
"""The probability that a new character is any of the replaced one's kind, instead of one from the visible inputs."""


def mutants(inputs: Sequence[Arguments], count: int, rng: random.Random, seconds: float) -> list[Arguments]:
    """Returns the arguments of at most `count` calls that differ from the visible ones and each other, after at most
    `seconds` of processor time. `inputs` are all of one length and contain literals; they are not changed. Where fewer
    than half can be found, numbers may be further from those seen."""
    ends = process_time() + seconds
    shape, bonds = shape_of(inputs, is_record=True), bonds_of(inputs)
    found = {repr(one): one for one in inputs}
    for number in range(2 * TRIES * count):
        if number == TRIES * count:
            if 2 * (len(found) - len(inputs)) >= count:
                break
            shape = shape_of(inputs, is_record=True, is_wide=True)
        if len(found) >= len(inputs) + count or process_time() > ends:
            break
        made: Any = rng.choice(inputs)
        try:
            for _ in range(rng.randint(1, _MAX_CHANGES)):
                made = changed(shape, made, rng)
        except (TypeError, ValueError, IndexError):  # a list put into a set, or a type that the shape has no values of
            continue
        made = restored(bonds, made, rng)
        if shape.keeps(made) and keep(bonds, made):
            found.setdefault(repr(made), made)
    return list(found.values())[len(inputs) :]


def changed(shape: Shape, value: Any, rng: random.Random) -> Any:
    """Returns the value with one change, or unchanged; the result may not fit the shape."""
    if shape.constant:
        return value
    if isinstance(value, bool):
        return rng.choice([one for one in shape.values if isinstance(one, bool)])
    if isinstance(value, int | float):
        return _number(shape, value, rng)
    if isinstance(value, str):
        return _text(shape, value, rng)
    if isinstance(value, dict):
        return _dictionary(shape, value, rng)
    if isinstance(value, list | tuple):
        return type(value)(_sequence(shape, list(value), rng))
    if isinstance(value, set | frozenset):
        return type(value)(_items(shape, sorted(value, key=repr), rng))
    return value


def _number(shape: Shape, value: Any, rng: random.Random) -> Any:
    seen = [one for one in shape.values if type(one) is type(value)]
    low, high = limits_of(seen, shape.is_wide)
    if isinstance(value, float):
        places = max(len(repr(one).partition(".")[2]) for one in seen)
        return round(rng.choice([rng.uniform(low, high), value + rng.choice([-1, 1]), rng.choice(seen)]), places)
    ways: list[Callable[[], int]] = [
        lambda: rng.randint(low, high),
        lambda: rng.randint(min(seen), max(seen)),
        lambda: value + rng.choice([-2, -1, 1, 2]),
        lambda: rng.choice(seen),
    ]
    made = rng.choice(ways)()
    if len(seen) > 1 and all(map(is_square, seen)):
        made = math.isqrt(abs(made)) ** 2
    return made


def _text(shape: Shape, text: str, rng: random.Random) -> str:
    seen = [one for one in shape.values if isinstance(one, str)]
    chars = list(text)
    words = text.split(" ")
    at = rng.randrange(len(chars) + 1)
    ways: list[Callable[[], str]] = [
        lambda: text[:at] + _char(seen, rng, text[at : at + 1]) + text[at + 1 :],
        lambda: text[:at] + _char(seen, rng, text[at : at + 1]) + text[at:],
        lambda: text[:at] + text[at + 1 :],
        lambda: text[:at] + text[max(at - 1, 0) :],
        lambda: "".join(_shuffled(chars, rng)),
        lambda: rng.choice(seen)[:at] + text[at:],
        lambda: text[::-1],
    ]
    if len(words) > 1:
        other = rng.choice(seen).split(" ")
        ways += [
            lambda: " ".join(_shuffled(words, rng)),
            lambda: " ".join(words[:-1]),
            lambda: " ".join([*words, rng.choice(words)]),
            lambda: " ".join([rng.choice(other), *words[1:]]),
        ]
    return rng.choice(ways)()


def _char(seen: Sequence[str], rng: random.Random, instead: str) -> str:
    """Returns one of the characters seen, or any letter or digit of the kind of the one that it replaces."""
    if rng.random() < _NEW_CHAR:
        for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
            if instead in kind and instead:
                return rng.choice(kind)
    return rng.choice("".join(seen) or " ")


def _shuffled(values: Sequence[Any], rng: random.Random) -> list[Any]:
    return rng.sample(values, len(values))


def _sequence(shape: Shape, items: list[Any], rng: random.Random) -> list[Any]:
    if shape.fields:
        key = rng.choice(list(shape.fields))
        items[key] = changed(shape.fields[key], items[key], rng)
        return items
    seen = [one for one in shape.values if isinstance(one, list | tuple) and len(one) > 1]
    made = _items(shape, items, rng)
    if seen and all(map(ascending, seen)):
        return _sorted(made)
    return _sorted(made)[::-1] if seen and all(map(descending, seen)) else made


def _items(shape: Shape, items: list[Any], rng: random.Random) -> list[Any]:
    """Returns the items of a container of like values with a change of items, their number or their order."""
    kind = shape.items
    if kind is None or not items:
        return items
    at = rng.randrange(len(items))
    new = changed(kind, rng.choice([*items, rng.choice(kind.values)]), rng)
    ways: list[Callable[[], list[Any]]] = [
        lambda: [*items[:at], changed(kind, items[at], rng), *items[at + 1 :]],
        lambda: [changed(kind, item, rng) if rng.random() < 0.5 else item for item in items],
        lambda: [*items[:at], new, *items[at:]],
        lambda: items[:at] + items[at + 1 :],
        lambda: [*items[:at], items[at], *items[at:]],
        lambda: _shuffled(items, rng),
        lambda: items[::-1],
        lambda: [*items[:at], new, *items[at + 1 :]],
    ]
    return rng.choice(ways)()


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return items


def _dictionary(shape: Shape, value: dict[Any, Any], rng: random.Random) -> dict[Any, Any]:
    if not value:
        return value
    key = rng.choice(list(value))
    if shape.fields:
        return {**value, key: changed(shape.fields[key], value[key], rng)}
    items, results = shape.items, shape.results
    assert items is not None  # a dictionary that is not empty was seen, so its items have shapes
    assert results is not None
    rest = {one: result for one, result in value.items() if one != key}
    ways: list[Callable[[], dict[Any, Any]]] = [
        lambda: {**value, key: changed(results, value[key], rng)},
        lambda: rest,
        lambda: {changed(items, key, rng): value[key], **rest},
        lambda: {**value, changed(items, key, rng): rng.choice(list(value.values()))},
        lambda: dict(zip(value, _shuffled(list(value.values()), rng), strict=True)),
    ]
    return rng.choice(ways)()
