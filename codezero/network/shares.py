"""Fair shares: an order in which nobody gets a second turn before everybody has had a first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


def in_turns(items: Sequence[T], shares: Sequence[Callable[[T], str]], rank: Callable[[Sequence[T]], float]) -> list[T]:
    """The items one turn after the other: one item of each share a turn, in the same way within each share.

    `shares` says who takes turns, from the coarsest to the finest; `rank` when one with these items has its turn, the
    lowest first. It must not fall by mere numbers, or more identities would buy an earlier turn.
    """
    if not shares:
        return sorted(items, key=lambda item: rank([item]))
    members: dict[str, list[T]] = {}
    for item in items:
        members.setdefault(shares[0](item), []).append(item)
    queues = [in_turns(held, shares[1:], rank) for held in sorted(members.values(), key=rank)]
    return [item for turn in zip_longest(*queues) for item in turn if item is not None]
