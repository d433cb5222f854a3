"""Makes inputs of programs like the visible ones: the same lines and words with other numbers and letters."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence

MAX_CHARS = 2_000
"""The most characters of an input that is changed."""
_MAX_CHANGES = 3
_COUNTS = 0.1
"""The probability that a change may also alter a number that may be a count of words or lines."""
_SIZES = 0.2
"""The probability that a line gets a word more or less, if no number may be a count."""
_TRIES = 8
"""The most tries for each requested input."""

Lines = list[list[str]]


def inputs_like(text: str, count: int, rng: random.Random, words: Collection[str] = ()) -> list[str]:
    """Returns at most `count` inputs that differ from the visible `text` and from each other. A word of `words` stays,
    or becomes another of them. The problem may not allow some inputs: right programs may fail on them."""
    lines = _lines(text)
    if len(text) > MAX_CHARS or not lines:
        return []
    counting = _counting(lines)
    found: dict[str, None] = {}
    for _ in range(_TRIES * count):
        made = [list(line) for line in lines]
        if not counting and rng.random() < _SIZES:
            _resize(rng.choice(made), rng)
        for _ in range(rng.randint(1, _MAX_CHANGES)):
            _change(made, counting, words, rng)
        if made != lines:
            found.setdefault(_text(made))
        if len(found) == count:
            break
    return list(found)


def written(text: str) -> str:
    """Returns an input with the white space that `inputs_like` writes."""
    return _text(_lines(text))


def _lines(text: str) -> Lines:
    return [line.split() for line in text.splitlines() if line.strip()]


def _text(lines: Lines) -> str:
    return "".join(" ".join(line) + "\n" for line in lines)


def _counting(lines: Lines) -> set[tuple[int, int]]:
    """Returns the (line, word) indices of numbers that may be the count of a line's words or of the lines that follow,
    or the length of a word."""
    sizes = {len(line) for line in lines if len(line) > 1} | {len(word) for line in lines for word in line}
    return {
        (i, j)
        for i, line in enumerate(lines)
        for j, word in enumerate(line)
        if _is_number(word) and (int(word) in sizes - {1} or 0 <= len(lines) - i - 1 - int(word) <= 1)
    }


def _resize(line: list[str], rng: random.Random) -> None:
    at = rng.randrange(len(line))
    if len(line) > 1 and rng.random() < 0.5:
        del line[at]
    elif len(line) > 1:
        line.insert(at, line[at])


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
    """Returns the next letter or digit, after the last one the one before; any other character stays."""
    if not (char.isascii() and char.isalnum()):
        return char
    following = chr(ord(char) + 1)
    return following if following.isalnum() else chr(ord(char) - 1)
