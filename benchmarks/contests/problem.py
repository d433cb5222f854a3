"""A contest problem, and functions that draw its inputs."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    name: str
    asks: str
    """The statement, with the format of input and output."""
    shown: tuple[str, str]
    """The example of the statement: input and output."""
    hidden: tuple[str, ...]
    """Further inputs, the last of them a big one."""
    core: str
    """A right program, in which `ints(count)` is the next line of numbers, `word()` the next line, and `emit(value)`
    prints a line. It uses neither `return` nor `global` outside of functions, so that it can be a function's body."""
    wrong: tuple[tuple[str, str], ...]
    """Changes, each of which makes it a program that passes the example and fails a hidden input."""


def row(*values: object) -> str:
    """One line of input."""
    return " ".join(map(str, values)) + "\n"


def numbers(count: int, low: int, high: int, seed: int = 0) -> list[int]:
    """Integers of low..high, the same each time."""
    draw = random.Random(f"{seed} {count} {low} {high}")
    return [draw.randint(low, high) for _ in range(count)]


def rows(count: int, *bounds: tuple[int, int]) -> str:
    """Lines of input with an integer for each of the bounds."""
    columns = [numbers(count, low, high, seed) for seed, (low, high) in enumerate(bounds)]
    return "".join(row(*values) for values in zip(*columns, strict=True))


def letters(count: int, alphabet: str, seed: int = 0) -> str:
    """A word of these letters, the same each time."""
    return "".join(alphabet[at] for at in numbers(count, 0, len(alphabet) - 1, seed))
