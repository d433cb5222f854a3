"""A bounded memory of what a node has seen."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

MAX_REMEMBERED = 20_000
"""The most publications, groups or proposals in one memory, which keeps them from being used twice."""

T = TypeVar("T")


def remember(memory: OrderedDict[T, None], what: T) -> None:
    """Adds an item as the newest, and removes the oldest if there are too many."""
    memory[what] = None
    memory.move_to_end(what)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
