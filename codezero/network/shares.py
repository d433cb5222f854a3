"""Fair shares: an order in which nobody gets a second turn before everybody has had a first."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Protocol, TypeVar


class FromPeer(Protocol):
    @property
    def peer_id(self) -> str: ...

    @property
    def address(self) -> str: ...


T = TypeVar("T", bound=FromPeer)


def fair_order(items: Iterable[T], dice: random.Random) -> list[T]:
    """Turns go round the addresses, within an address round its peers, and are random otherwise: a thousand identities
    of one address come no earlier than one."""
    addresses: dict[str, dict[str, list[T]]] = {}
    for item in _shuffled(list(items), dice):
        addresses.setdefault(item.address, {}).setdefault(item.peer_id, []).append(item)
    return _in_turns([_in_turns(list(peers.values())) for peers in addresses.values()])


def _in_turns(queues: Sequence[Sequence[T]]) -> list[T]:
    return [item for turn in zip_longest(*queues) for item in turn if item is not None]


def _shuffled(items: list[T], dice: random.Random) -> list[T]:
    return dice.sample(items, len(items))
