"""Properties that all visible inputs share, and that a mutant of them must have too."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

Fact = Callable[[Any], bool]

_MAX_TEXT = 400
"""The first characters of a text whose pairs and runs are compared."""
_SMALL = 10
"""The least number that is no prime, square or power of two by chance: most smaller ones are one of these."""
_ODD_SIZES = 3
"""The fewest different integers for which it counts as a fact, not as chance, that all are even, squares and the
like."""


def is_square(n: int) -> bool:
    return n >= 0 and math.isqrt(n) ** 2 == n


_OF_NUMBERS: tuple[Fact, ...] = (
    lambda n: n >= 0,
    lambda n: n > 0,
    lambda n: n <= 0,
    lambda n: n < 0,
    lambda n: n != 0,
)
_OF_MANY_INTEGERS: tuple[Fact, ...] = (
    is_square,
    lambda n: n > 0 and n & (n - 1) == 0,
    lambda n: n > 1 and all(n % d for d in range(2, min(math.isqrt(max(n, 0)), 1000) + 1)),
)
_BY_CHANCE: tuple[Fact, ...] = (
    lambda n: n % 2 == 0,
    lambda n: n % 2 == 1,
    lambda n: n % 5 == 0,
    lambda n: str(n) == str(n)[::-1],
    lambda n: len(set(str(n))) == len(str(n)),
    lambda n: "0" not in str(n),
)


def _ordered(values: Sequence[Any], holds: Callable[[Any, Any], bool]) -> bool:
    try:
        return all(holds(a, b) for a, b in pairwise(values))
    except TypeError:
        return False


def ascending(values: Sequence[Any]) -> bool:
    return _ordered(values, lambda a, b: a <= b)


def descending(values: Sequence[Any]) -> bool:
    return _ordered(values, lambda a, b: a >= b)


def distinct(values: Sequence[Any]) -> bool:
    return len({repr(value) for value in values}) == len(values)


def _lengths(values: Sequence[Any]) -> set[int]:
    return {len(value) if isinstance(value, str | list | tuple | set | dict) else -1 for value in values}


def _any(holds: Callable[[Any], bool]) -> Fact:
    return lambda values: any(type(value) in (int, float) and holds(value) for value in values)


_OF_SEQUENCES: tuple[Fact, ...] = (
    bool,
    ascending,
    descending,
    distinct,
    lambda values: not distinct(values),
    lambda values: len(_lengths(values)) <= 1,
    lambda values: _lengths(values) <= {len(values)},
    lambda values: len({type(value) for value in values}) <= 1,
    lambda values: len(values) % 2 == 0,
    lambda values: len(values) % 2 == 1,
    lambda values: list(values) == list(values)[::-1],
    lambda values: _ordered(values, lambda a, b: b - a == 1),
    lambda values: sorted(map(repr, values)) == sorted(map(repr, range(1, len(values) + 1))),
    *map(_any, (lambda n: n < 0, lambda n: n > 0, lambda n: n == 0, lambda n: n % 2 == 0, lambda n: n % 2 == 1)),
)


def _balanced(text: str) -> bool:
    stack: list[str] = []
    for char in text:
        if char in "([{":
            stack.append(")]}"["([{".index(char)])
        elif char in ")]}" and (not stack or stack.pop() != char):
            return False
    return not stack


_OF_TEXTS: tuple[Fact, ...] = (
    bool,
    str.isdigit,
    str.isalpha,
    str.islower,
    str.isupper,
    str.istitle,
    str.isidentifier,
    distinct,
    ascending,
    _balanced,
    lambda text: text == text[::-1],
    lambda text: distinct(text.split()),
    lambda text: not distinct(text.split()),
    lambda text: len(text) % 2 == 0,
    lambda text: text.count('"') % 2 == 0 and text.count("'") % 2 == 0,
    lambda text: any(map(str.isdigit, text)),
    lambda text: any(map(str.isupper, text)),
    lambda text: any(char in "aeiouAEIOU" for char in text),
    lambda text: not re.match(r"0\d", text),
)


def kind_of(char: str) -> str:
    """Returns the kind of a character: letters are of one kind per case, digits of one; any other is its own kind."""
    return "a" if char.islower() else "A" if char.isupper() else "0" if char.isdigit() else char


def pairs(text: str) -> set[str]:
    """Returns the pairs of kinds of adjacent characters, with the text's beginning and end as kinds."""
    kinds = ["^", *map(kind_of, text[:_MAX_TEXT]), "$"]
    return {a + b for a, b in pairwise(kinds)}


def outline(text: str) -> str:
    """Returns the kinds of the characters in order, with runs of one kind as one: `0-0-0` for a date."""
    return "".join(kind for kind, _ in groupby(text[:_MAX_TEXT], kind_of))


def _widths(text: str) -> tuple[int, ...]:
    """Returns the lengths of the runs of characters of one kind."""
    return tuple(len(list(run)) for _, run in groupby(text[:_MAX_TEXT], kind_of))


def numbers_in(text: str) -> list[int]:
    return [int(run) for run in re.findall(r"[0-9]{1,18}", text[:_MAX_TEXT])]


def _of_all_texts(texts: Sequence[str]) -> list[Fact]:
    """Returns the facts that depend on all visible texts: which characters are adjacent, how large numbers are, and
    outlines and lengths."""
    seen = set().union(*map(pairs, texts))
    chars = set().union(*texts)
    largest = max((number for text in texts for number in numbers_in(text)), default=0)
    facts: list[Fact] = [
        lambda text: pairs(text) <= seen,
        lambda text: all(number <= largest for number in numbers_in(text)),
    ]
    if len(chars) <= max(8, sum(map(len, texts)) // 4):
        facts.append(lambda text: set(text) <= chars)
    outlines = set(map(outline, texts))
    if len(texts) > 1 and len(outlines) == 1 and len(next(iter(outlines))) > 1:
        columns = [(min(column), max(column)) for column in zip(*map(numbers_in, texts), strict=False)]
        widths = set(map(_widths, texts))
        facts += [
            lambda text: outline(text) in outlines,
            lambda text: all(a <= n <= b for n, (a, b) in zip(numbers_in(text), columns, strict=False)),
            lambda text: len(widths) > 1 or _widths(text) in widths,
        ]
    return facts + _of_lengths(texts)


def _of_lengths(values: Sequence[Any]) -> list[Fact]:
    """Returns the limits of a mutant's length: the visible length if all are equal, else from half the shortest to one
    and a half times the longest."""
    lengths = sorted(map(len, values))
    low, high = (lengths[0] + 1) // 2, max(lengths[-1] * 3 // 2, lengths[-1] + 1)
    if len(lengths) > 1 and lengths[0] == lengths[-1]:
        low = high = lengths[0]
    return [lambda value: low <= len(value) <= high]


def limits_of(numbers: Sequence[Any], is_wide: bool = False) -> tuple[Any, Any]:
    """Returns the smallest and the largest number of a mutant: half the visible range beyond that range, or from half
    to twice a single number; if `is_wide`, the same once more around these."""
    if is_wide:
        numbers = limits_of(numbers)
    low, high = min(numbers), max(numbers)
    if low == high:
        return (low // 2, low * 2 + 1) if low >= 0 else (low * 2, low // 2)
    room = (high - low) / 2 if isinstance(high - low, float) else max((high - low) // 2, 2 * (high > 1))
    return low - room, high + room


def facts_of(values: Sequence[Any], is_wide: bool = False) -> list[Fact]:
    """Returns the facts that hold for all the values, which are of one type, and must hold for a mutant. If `is_wide`,
    those of integers that often hold by chance, such as that all are odd, are left out."""
    first = values[0]
    if isinstance(first, bool) or first is None:
        return []
    if isinstance(first, int | float):
        low, high = limits_of(values, is_wide)
        many: tuple[Fact, ...] = ()
        if isinstance(first, int) and len(set(values)) >= _ODD_SIZES:
            if not is_wide:
                many = (*_OF_MANY_INTEGERS, *_BY_CHANCE)
            elif max(map(abs, values)) >= _SMALL:
                many = _OF_MANY_INTEGERS
        given: list[Fact] = [lambda n: low <= n <= high]
        if isinstance(first, float):
            places = max(len(repr(value).partition(".")[2]) for value in values)
            given.append(lambda n: n == round(n, places))
        return given + _shared((*_OF_NUMBERS, *many), values)
    if isinstance(first, str):
        return _of_all_texts(values) + _shared(_OF_TEXTS, values)
    if isinstance(first, list | tuple):
        return _of_lengths(values) + _shared(_OF_SEQUENCES, values)
    if isinstance(first, set | frozenset | dict):
        return _of_lengths(values)
    return []


def _shared(facts: Sequence[Fact], values: Sequence[Any]) -> list[Fact]:
    return [fact for fact in facts if all(holds(fact, value) for value in values)]


def holds(fact: Fact, value: Any) -> bool:
    """Returns whether the fact is true of the value; false if it cannot be computed."""
    try:
        return fact(value)
    except (TypeError, ValueError, OverflowError):
        return False
