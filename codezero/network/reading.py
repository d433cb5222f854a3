"""Reading a shelf within seconds, whatever stands on it: address by address, counting what is dropped and why."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from codezero.network.board import Notice, Shelf
from codezero.network.dht.dht import Dht
from codezero.network.dht.link import SwarmLink
from codezero.network.memory import remember
from codezero.network.shares import in_turns
from codezero.network.wire import Reason, WireError

logger = logging.getLogger(__name__)

READY_S, LOOK_S, GATHER_S, TAKE_S = 3.0, 6.0, 5.0, 4.0
"""Longest wait for the network, for a look at a shelf, until the last record is asked for, and for one record."""
MAX_FETCHES = 8
"""Records fetched at a time."""
MAX_COUNTED = 1000
"""Peers whose rejections are counted once between two reports: a lying replica makes up as many as it likes."""

BY_ADDRESS_AND_PEER = (lambda notice: notice.address, lambda notice: notice.peer_id)

T = TypeVar("T")


class Reader:
    """Nothing that peers send makes it raise."""

    def __init__(self, link: SwarmLink, banned: Collection[str]) -> None:
        self._link, self._banned = link, frozenset(banned)
        self._done: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._rejected: Counter[str] = Counter()
        self._counted: set[tuple[str, Reason]] = set()
        self.in_sight = 0
        """Peers that the last look showed."""

    async def network(self) -> Dht | None:
        """None while there is none, as when the daemon is being started again."""
        try:
            return await asyncio.wait_for(self._link.dht(), READY_S)
        except asyncio.TimeoutError:
            return None

    async def read(self, shelf: Shelf[T], enough: int | None = None) -> list[tuple[Notice, tuple[T, ...]]]:
        """The records in sight that are not done with, in an order in which no address comes a second time before every
        other has come once. Goes on until it has `enough` records with so many items, or time is up."""
        dht = await self.network()
        self.in_sight = 0
        if dht is None:
            return []
        try:
            sight = await asyncio.wait_for(shelf.look(dht), LOOK_S)
        except asyncio.TimeoutError:
            return []
        self.in_sight = len(sight.notices)
        for peer_id, reason in sight.rejected:
            self._reject_once(peer_id, reason)
        if sight.own:
            self._reject_once("", Reason.OWN_KEY)
        fresh = [notice for notice in sight.notices if self._is_fresh(notice)]
        return await self._take_all(dht, shelf, in_turns(fresh, BY_ADDRESS_AND_PEER, lambda _: random.random()), enough)

    def done(self, notice: Notice) -> None:
        """Nothing more is wanted of a record; the peer's next one is another."""
        remember(self._done, (notice.peer_id, notice.digest))

    def reject(self, reason: Reason) -> None:
        self._rejected[reason.value] += 1

    def take_rejected(self) -> Mapping[str, int]:
        """What was dropped since the last call, by reason."""
        taken, self._rejected = dict(self._rejected), Counter()
        self._counted.clear()
        return taken

    async def _take_all(
        self, dht: Dht, shelf: Shelf[T], ahead: Sequence[Notice], enough: int | None
    ) -> list[tuple[Notice, tuple[T, ...]]]:
        taken: list[tuple[Notice, tuple[T, ...]]] = []
        deadline_s = time.monotonic() + GATHER_S
        while ahead and time.monotonic() < deadline_s:
            if enough is not None and min(len(taken), sum(len(items) for _, items in taken)) >= enough:
                break
            now, ahead = ahead[:MAX_FETCHES], ahead[MAX_FETCHES:]
            found = await asyncio.gather(*[self._take(dht, shelf, notice) for notice in now])
            taken += [(notice, items) for notice, items in zip(now, found, strict=True) if items is not None]
        return taken

    async def _take(self, dht: Dht, shelf: Shelf[T], notice: Notice) -> tuple[T, ...] | None:
        """None if it cannot be had or read."""
        try:
            items, dropped = await asyncio.wait_for(shelf.take(dht, notice), TAKE_S)
        except asyncio.TimeoutError:
            self._reject_once(notice.peer_id, Reason.UNAVAILABLE)
            return None
        except WireError as error:
            logger.info("dropped what %s published: %s", notice.peer_id, error)
            self._reject_once(notice.peer_id, error.reason)
            if error.reason is not Reason.UNAVAILABLE:
                self.done(notice)
            return None
        self._rejected.update(reason.value for reason in dropped)
        return items

    def _is_fresh(self, notice: Notice) -> bool:
        if notice.peer_id in self._banned:
            self._reject_once(notice.peer_id, Reason.BANNED)
            return False
        return (notice.peer_id, notice.digest) not in self._done

    def _reject_once(self, peer_id: str, reason: Reason) -> None:
        """Each look shows it again."""
        if (peer_id, reason) not in self._counted and len(self._counted) < MAX_COUNTED:
            self._counted.add((peer_id, reason))
            self.reject(reason)
