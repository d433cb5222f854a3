"""Reads a feed within seconds, whatever it has: address by address, counting what is dropped and why."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from codezero.network.board import Notice, RecordFeed
from codezero.network.dht.dht import Dht
from codezero.network.dht.link import SwarmLink
from codezero.network.memory import remember
from codezero.network.shares import in_turns
from codezero.network.wire import Reason, WireError

logger = logging.getLogger(__name__)

READY_S, LOOK_S, GATHER_S, TAKE_S = 3.0, 6.0, 5.0, 4.0
"""Longest waits in seconds: for the network, for a look at a feed, until the last record is asked for, for a record."""
MAX_FETCHES = 8
"""The most records fetched at a time."""
MAX_COUNTED = 1000
"""The most (peer, reason) pairs that are counted between two reports, since a lying replica can make up any number."""

BY_ADDRESS_AND_PEER = (lambda notice: notice.address, lambda notice: notice.peer_id)
"""Shares for `in_turns`."""

T = TypeVar("T")


class Reader:
    """Reads feeds, and raises no error because of what peers send."""

    def __init__(self, link: SwarmLink, banned: Collection[str]) -> None:
        self._link, self._banned = link, frozenset(banned)
        self._done: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._rejected: Counter[str] = Counter()
        self._counted: set[tuple[str, Reason]] = set()
        self.in_sight = 0
        """The number of peers in the last look."""

    async def network(self) -> Dht | None:
        """Returns the DHT; None if there is none in time, as while the daemon is being started again."""
        try:
            return await asyncio.wait_for(self._link.dht(), READY_S)
        except asyncio.TimeoutError:
            return None

    async def read(self, feed: RecordFeed[T], enough: int | None = None) -> list[tuple[Notice, tuple[T, ...]]]:
        """Returns the visible records that `done` was not called for, in turns over addresses and peers. Stops when it
        has `enough` records with as many items, or time is over."""
        dht = await self.network()
        self.in_sight = 0
        if dht is None:
            return []
        try:
            sight = await asyncio.wait_for(feed.look(dht), LOOK_S)
        except asyncio.TimeoutError:
            return []
        self.in_sight = len(sight.notices)
        for peer_id, reason in sight.rejected:
            self._reject_once(peer_id, reason)
        if sight.own:
            self._reject_once("", Reason.OWN_KEY)
        fresh = [notice for notice in sight.notices if self._is_fresh(notice)]
        return await self._take_all(dht, feed, in_turns(fresh, BY_ADDRESS_AND_PEER, lambda _: random.random()), enough)

    def done(self, notice: Notice) -> None:
        """Marks a record as used up, so that it is not read again."""
        remember(self._done, (notice.peer_id, notice.digest))

    def reject(self, reason: Reason) -> None:
        """Counts something that was dropped."""
        self._rejected[reason.value] += 1

    def take_rejected(self) -> Mapping[str, int]:
        """Returns how much was dropped since the last call, by reason."""
        taken, self._rejected = dict(self._rejected), Counter()
        self._counted.clear()
        return taken

    async def _take_all(
        self, dht: Dht, feed: RecordFeed[T], ahead: Sequence[Notice], enough: int | None
    ) -> list[tuple[Notice, tuple[T, ...]]]:
        taken: list[tuple[Notice, tuple[T, ...]]] = []
        deadline_s = time.monotonic() + GATHER_S
        while ahead and time.monotonic() < deadline_s:
            if enough is not None and min(len(taken), sum(len(items) for _, items in taken)) >= enough:
                break
            now, ahead = ahead[:MAX_FETCHES], ahead[MAX_FETCHES:]
            found = await asyncio.gather(*[self._take(dht, feed, notice) for notice in now])
            taken += [(notice, items) for notice, items in zip(now, found, strict=True) if items is not None]
        return taken

    async def _take(self, dht: Dht, feed: RecordFeed[T], notice: Notice) -> tuple[T, ...] | None:
        """Returns a record's items; None if it cannot be fetched or read."""
        try:
            items, dropped = await asyncio.wait_for(feed.take(dht, notice), TAKE_S)
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
        """Counts a rejection once between two reports, since each look shows it again."""
        if (peer_id, reason) not in self._counted and len(self._counted) < MAX_COUNTED:
            self._counted.add((peer_id, reason))
            self.reject(reason)
