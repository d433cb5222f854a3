"""What a node has seen, by hash, within bounds."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

MAX_REMEMBERED = 20_000
"""Publications, groups or proposals, so that none is used twice."""

T = TypeVar("T")


def remember(memory: OrderedDict[T, None], what: T) -> None:
    """Forgets what was seen longest ago when there is too much."""
    memory[what] = None
    memory.move_to_end(what)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
