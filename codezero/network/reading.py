"""Reads a feed within seconds, whatever it has: address by address, counting what is dropped and why."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import TypeVar

from codezero.network.board import Notice, RecordFeed
from codezero.network.dht.dht import Dht
from codezero.network.dht.link import SwarmLink
from codezero.network.memory import remember
from codezero.network.shares import in_turns
from codezero.network.wire import Reason, WireError

logger = logging.getLogger(__name__)

READY_S, FEED_LOOK_S, FEED_GATHER_S, FEED_TAKE_S = 3.0, 12.0, 5.0, 7.0
"""Longest waits in seconds: for the network, for a look at a feed, until the last record is asked for, for a record. A
search among silent nodes takes up to MAX_SEARCH_S and one answer's time more, which nobody may cut short."""
MAX_FETCHES = 8
"""The most records fetched at a time."""
MAX_REJECTED = 1000
"""The most (peer, reason) pairs that are counted between two reports, since a lying replica can make up any number."""

BY_ADDRESS_AND_PEER = (lambda notice: notice.address, lambda notice: notice.peer_id)
"""The keys that take turns in `in_turns`: addresses, then the peers of an address."""

T = TypeVar("T")


class Reader:
    """Takes what peers have published, and counts what is dropped. Raises no error because of what they send."""

    def __init__(self, link: SwarmLink, banned: Collection[str]) -> None:
        self._link, self._banned = link, frozenset(banned)
        self._done: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._rejected: Counter[tuple[str, Reason]] = Counter()
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
            sight = await asyncio.wait_for(feed.look(dht), FEED_LOOK_S)
        except asyncio.TimeoutError:
            return []
        self.in_sight = len(sight.notices)
        for peer_id, reason in sight.rejected:
            self.reject_once(peer_id, reason)
        if sight.own:
            self.reject_once("", Reason.OWN_KEY)
        fresh = [notice for notice in sight.notices if self.is_fresh(notice)]
        return await self._take_all(dht, feed, in_turns(fresh, BY_ADDRESS_AND_PEER, lambda _: random.random()), enough)

    def done(self, notice: Notice) -> None:
        """Marks a record as used up, so that it is not read again."""
        remember(self._done, (notice.peer_id, notice.digest))

    def is_fresh(self, notice: Notice) -> bool:
        """Returns True if the peer is not banned and `done` was not called for the publication."""
        if notice.peer_id in self._banned:
            self.reject_once(notice.peer_id, Reason.BANNED)
            return False
        return (notice.peer_id, notice.digest) not in self._done

    async def take(
        self, notice: Notice, taking: Awaitable[tuple[tuple[T, ...], tuple[Reason, ...]]], limit_s: float
    ) -> tuple[T, ...] | Reason:
        """Waits for a board's or feed's `take`. Returns the items of the publication, or why none can be used; unless
        they are only unavailable, the publication is `done` then."""
        try:
            items, dropped = await asyncio.wait_for(taking, limit_s)
        except (WireError, asyncio.TimeoutError) as error:
            reason = error.reason if isinstance(error, WireError) else Reason.UNAVAILABLE
            logger.info("dropped what %s published: %r", notice.peer_id, error)
            self.reject_once(notice.peer_id, reason)
            if reason is not Reason.UNAVAILABLE:
                self.done(notice)
            return reason
        self._rejected.update((notice.peer_id, reason) for reason in dropped)
        return items

    def reject(self, peer_id: str, reason: Reason) -> None:
        """Counts something that was dropped."""
        self._rejected[peer_id, reason] += 1

    def reject_once(self, peer_id: str, reason: Reason) -> None:
        """Counts a rejection once between two reports, since each look shows it again."""
        if len(self._rejected) < MAX_REJECTED:
            self._rejected[peer_id, reason] = self._rejected[peer_id, reason] or 1

    def take_rejected(self) -> Counter[tuple[str, Reason]]:
        """Returns how much was dropped since the last call, by claimed peer id and reason."""
        taken, self._rejected = self._rejected, Counter()
        return taken

    def take_reasons(self) -> Mapping[str, int]:
        """Returns how much was dropped since the last call, by reason."""
        found: Counter[str] = Counter()
        for (_, reason), count in self.take_rejected().items():
            found[reason.value] += count
        return found

    async def _take_all(
        self, dht: Dht, feed: RecordFeed[T], ahead: Sequence[Notice], enough: int | None
    ) -> list[tuple[Notice, tuple[T, ...]]]:
        taken: list[tuple[Notice, tuple[T, ...]]] = []
        deadline_s = time.monotonic() + FEED_GATHER_S
        while ahead and time.monotonic() < deadline_s:
            if enough is not None and min(len(taken), sum(len(items) for _, items in taken)) >= enough:
                break
            now, ahead = ahead[:MAX_FETCHES], ahead[MAX_FETCHES:]
            found = await asyncio.gather(*[self.take(notice, feed.take(dht, notice), FEED_TAKE_S) for notice in now])
            taken += [(one, items) for one, items in zip(now, found, strict=True) if not isinstance(items, Reason)]
        return taken
