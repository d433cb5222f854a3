"""Inputs of programs like the visible ones: of the same lines and words, with other numbers and letters."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence

MAX_CHARS = 2_000
"""Longer inputs are left as they are."""
_MAX_CHANGES = 3
_COUNTS = 0.1
"""How often a number is changed that may say how many words or lines there are."""
_TRIES = 8
"""Changes that are tried for each input that is asked for."""

Lines = list[list[str]]


def inputs_like(text: str, count: int, rng: random.Random, words: Collection[str] = ()) -> list[str]:
    """At most so many inputs that differ from a visible one, and from each other; `words` stay as they are, or become
    others of them. They may be none that the problem allows: right programs may fail on some."""
    lines = _lines(text)
    if len(text) > MAX_CHARS or not lines:
        return []
    counting = _counting(lines)
    found: dict[str, None] = {}
    for _ in range(_TRIES * count):
        made = [list(line) for line in lines]
        for _ in range(rng.randint(1, _MAX_CHANGES)):
            _change(made, counting, words, rng)
        if made != lines:
            found.setdefault(_text(made))
        if len(found) == count:
            break
    return list(found)


def written(text: str) -> str:
    """An input with space between words and at its ends as `inputs_like` has it."""
    return _text(_lines(text))


def _lines(text: str) -> Lines:
    return [line.split() for line in text.splitlines() if line.strip()]


def _text(lines: Lines) -> str:
    return "".join(" ".join(line) + "\n" for line in lines)


def _counting(lines: Lines) -> set[tuple[int, int]]:
    """Returns where numbers may say how many words a line has, how many lines follow, or how long words are."""
    sizes = {len(line) for line in lines if len(line) > 1} | {len(word) for line in lines for word in line}
    return {
        (i, j)
        for i, line in enumerate(lines)
        for j, word in enumerate(line)
        if _is_number(word) and (int(word) in sizes - {1} or 0 <= len(lines) - i - 1 - int(word) <= 1)
    }


def _change(lines: Lines, counting: set[tuple[int, int]], words: Collection[str], rng: random.Random) -> None:
    places = [(i, j) for i, line in enumerate(lines) for j in range(len(line))]
    free = [place for place in places if place not in counting]
    i, j = rng.choice(places if not free or rng.random() < _COUNTS else free)
    others = [lines[a][b] for a, b in free if _is_number(lines[a][b]) == _is_number(lines[i][j])]
    if lines[i][j] in words:
        lines[i][j] = rng.choice([one for line in lines for one in line if one in words])
    elif others and rng.random() < 0.2:
        lines[i][j] = rng.choice(others)
    else:
        lines[i][j] = (_number if _is_number(lines[i][j]) else _word)(lines[i][j], others, rng)


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,30}", word) is not None


def _number(word: str, others: Sequence[str], rng: random.Random) -> str:
    value, most = int(word), max([abs(int(one)) for one in others] or [1])
    ways: list[Callable[[], int]] = [
        lambda: value + rng.choice([-2, -1, 1, 2]),
        lambda: rng.randint(1, max(most, 1)),
        lambda: rng.randint(0, 2 * abs(value) + 1),
    ]
    made = rng.choice(ways)()
    return str(abs(made) if value >= 0 else made)


def _word(word: str, others: Sequence[str], rng: random.Random) -> str:
    chars, at = "".join([word, *others]), rng.randrange(len(word))
    ways: list[Callable[[], str]] = [
        lambda: word[:at] + rng.choice(chars) + word[at + 1 :],
        lambda: word[:at] + _next(word[at]) + word[at + 1 :],
        lambda: "".join(rng.sample(word, len(word))),
        lambda: "".join(rng.choice(chars) for _ in word),
        lambda: word[:at] + rng.choice(chars) + word[at:],
        lambda: word[:at] + word[at + 1 :] or word,
    ]
    return rng.choice(ways if rng.random() < 0.5 else ways[:4])()


def _next(char: str) -> str:
    """The next letter or digit; another character stays."""
    if not (char.isascii() and char.isalnum()):
        return char
    following = chr(ord(char) + 1)
    return following if following.isalnum() else chr(ord(char) - 1)
