"""Fair shares: an order in which no one has a second turn before everyone has had a first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


def in_turns(items: Sequence[T], shares: Sequence[Callable[[T], str]], rank: Callable[[Sequence[T]], float]) -> list[T]:
    """Returns the items in turns: each turn has one item of each share, chosen in the same way within the share.

    `shares` are the keys that take turns, from the coarsest to the finest. `rank` orders the shares of a level by their
    items, lowest first. It must not fall with the number of items, or more identities would get earlier turns.
    """
    if not shares:
        return sorted(items, key=lambda item: rank([item]))
    members: dict[str, list[T]] = {}
    for item in items:
        members.setdefault(shares[0](item), []).append(item)
    queues = [in_turns(held, shares[1:], rank) for held in sorted(members.values(), key=rank)]
    return [item for turn in zip_longest(*queues) for item in turn if item is not None]
