"""The board of native swarms: signed announcements in sharded directories, bodies under their hash."""

from __future__ import annotations

import hashlib
import random
import time
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from hivemind.p2p import PeerID

from codezero.network import directory, wire
from codezero.network.addresses import UNKNOWN
from codezero.network.board import Notice, Sight
from codezero.network.dht import Dht, Entry
from codezero.network.identity import Identity
from codezero.network.wire import Announcement, Reason, WireError
from codezero.types import RolloutGroup, RoundId

DEEPER = 3
"""How many bits deeper a publisher goes when its shard is full."""


class NativeBoard:
    """board.Board. `instance` is a random number of this process, which tells it from another with the same key."""

    def __init__(self, swarm: str, identity: Identity, instance: str, window: int) -> None:
        self._swarm, self._identity, self._instance = swarm, identity, instance
        self._exchanges_s: deque[float] = deque(maxlen=window)
        """When our last W exchanges ended."""
        self._shards: tuple[RoundId | None, Sequence[str]] = (None, ())
        self._expires_at_s = 0.0
        self._started_at_s = time.time()

    async def publish(self, dht: Dht, round_id: RoundId, groups: Sequence[RolloutGroup], ttl_s: float) -> bool:
        """Raises WireError: the groups are too large for one record."""
        body = wire.pack_groups(groups)
        now = time.time()
        # Servers keep the record that expires last, so a later one of ours must not expire earlier.
        self._expires_at_s = max(now + ttl_s, self._expires_at_s + 0.001)
        announcement = Announcement(
            swarm=self._swarm,
            peer_id=self._identity.peer_id,
            round=round_id.number,
            published_at_s=now,
            expires_at_s=self._expires_at_s,
            instance=self._instance,
            digest=hashlib.sha256(body).digest(),
            size=len(body),
        )
        if not any(await dht.store(directory.body_key(announcement.digest), None, body, self._expires_at_s)):
            return False
        signed = wire.sign_announcement(announcement, self._identity)
        bits = round(directory.depth(dht.estimate_size()))
        for deeper in range(DEEPER):
            shard = directory.shard_of(self._swarm, self._identity.peer_id, bits + deeper)
            key = directory.directory_key(self._swarm, shard)
            if any(await dht.store(key, self._identity.peer_id, signed, self._expires_at_s)):
                return True
        return False

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        if self._shards[0] != round_id:
            own = directory.shard_of(self._swarm, self._identity.peer_id, round(directory.depth(dht.estimate_size())))
            read = directory.shards_to_read(dht.estimate_size(), random.Random())
            self._shards = (round_id, tuple(dict.fromkeys([own, *read])))
        sight = Sight()
        newest: dict[str, Notice] = {}
        for shard in self._shards[1]:
            for replica in await dht.read(directory.directory_key(self._swarm, shard)):
                for peer_id, entry in replica.items():
                    await self._see(dht, peer_id, entry, newest, sight)
        sight.notices = list(newest.values())
        return sight

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        announcement: Announcement = notice.content

        def is_right(body: bytes) -> bool:
            return hashlib.sha256(body).digest() == announcement.digest

        body = await dht.fetch(directory.body_key(announcement.digest), is_right)
        if body is None:
            raise WireError(Reason.UNAVAILABLE, "no node near has the body")
        return wire.unpack_groups(body, announcement), ()

    def finished(self, round_id: RoundId) -> None:
        self._exchanges_s.append(time.time())

    async def _see(self, dht: Dht, peer_id: str, entry: Entry, newest: dict[str, Notice], sight: Sight) -> None:
        try:
            announcement = _verified(entry.value, self._swarm, peer_id)
            if announcement.published_at_s > time.time() + directory.MAX_CLOCK_ERROR_S:
                raise WireError(Reason.STALE, "published in the future")
        except WireError as error:
            sight.rejected.add((peer_id, error.reason))
            return
        if peer_id == self._identity.peer_id:
            later = announcement.published_at_s > self._started_at_s
            sight.twin |= later and announcement.instance != self._instance
            return
        known = newest.get(peer_id)
        if known is not None and known.content.published_at_s >= announcement.published_at_s:
            return
        seen = await dht.addresses.address_of(PeerID.from_base58(peer_id))
        newest[peer_id] = Notice(
            peer_id=peer_id,
            digest=announcement.digest,
            content=announcement,
            address=seen if seen != UNKNOWN else entry.address or UNKNOWN,
            age=self._age(announcement.published_at_s),
        )

    def _age(self, published_at_s: float) -> int | None:
        """In our exchanges since; a node in its first rounds takes all there is."""
        age = sum(ended_s > published_at_s for ended_s in self._exchanges_s)
        return None if self._exchanges_s.maxlen == age else age


@lru_cache(maxsize=4096)
def _verified(raw: bytes, swarm: str, peer_id: str) -> Announcement:
    """Remembered, because every replica sends the same and every look shows it again."""
    return wire.read_announcement(raw, swarm=swarm, peer_id=peer_id)
