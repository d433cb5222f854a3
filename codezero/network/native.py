"""The board of native swarms: signed announcements in sharded directories, bodies under their hash."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from hivemind.p2p import PeerID

from codezero.dht.addresses import UNKNOWN
from codezero.dht.dht import Dht, Entry
from codezero.identity.key import Identity
from codezero.network import directory, wire
from codezero.network.board import Notice, Sight
from codezero.network.wire import Announcement, Reason, WireError
from codezero.types import RolloutGroup, RoundId

DEEPER = 3
"""How many bits deeper a publisher goes when its shard is full."""
MIN_WITNESSES = 2
"""Replicas that must say the same of a publisher's address where we have seen no connection of it."""


class NativeBoard:
    """board.Board. `instance` is a random number of this process, which tells it from another with the same key."""

    def __init__(self, swarm: str, identity: Identity, instance: str, window: int) -> None:
        self._swarm, self._identity, self._instance = swarm, identity, instance
        self._exchanges_s: deque[float] = deque(maxlen=window)
        """When we last looked in each of our last W exchanges."""
        self._shards: tuple[RoundId | None, Sequence[str]] = (None, ())
        self._started_at_s = self._looked_at_s = time.time()
        self._twin = False
        """Whether one was seen since the last exchange."""

    async def publish(self, dht: Dht, round_id: RoundId, groups: Sequence[RolloutGroup], ttl_s: float) -> bool:
        """Raises WireError: the groups are too large for one record."""
        body = wire.pack_groups(groups)
        now = time.time()
        announcement = Announcement(
            swarm=self._swarm,
            peer_id=self._identity.peer_id,
            round=round_id.number,
            published_at_s=now,
            expires_at_s=now + ttl_s,
            instance=self._instance,
            digest=hashlib.sha256(body).digest(),
            size=len(body),
        )
        if not any(await dht.store(directory.body_key(announcement.digest), None, body, announcement.expires_at_s)):
            return False
        signed = wire.sign_announcement(announcement, self._identity)
        bits = round(directory.depth(dht.estimate_size()))
        for deeper in range(DEEPER):
            shard = directory.shard_of(self._swarm, self._identity.peer_id, bits + deeper)
            key = directory.directory_key(self._swarm, shard)
            kept, before = await dht.replace(key, self._identity.peer_id, signed, announcement.expires_at_s)
            self._twin |= self._is_there_a_twin(before)
            if any(kept):
                return True
        return False

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        if self._shards[0] != round_id:
            self._shards = (round_id, directory.shards_to_read(dht.estimate_size(), random.Random()))
        self._looked_at_s = time.time()
        keys = [directory.directory_key(self._swarm, shard) for shard in self._shards[1]]
        shown = await asyncio.gather(*[dht.read(key) for key in keys])
        sight = Sight(twin=self._twin)
        newest: dict[str, Announcement] = {}
        claims: dict[str, dict[str, str]] = {}
        for peer_id, entry in (pair for replicas in shown for replica in replicas for pair in replica.items()):
            announcement = self._check(peer_id, entry, sight)
            if announcement is None:
                continue
            if entry.address is not None:
                claims.setdefault(peer_id, {})[entry.witness] = entry.address
            known = newest.get(peer_id)
            if known is None or known.published_at_s < announcement.published_at_s:
                newest[peer_id] = announcement
        for peer_id, announcement in newest.items():
            sight.notices.append(await self._notice(dht, announcement, claims.get(peer_id, {}).values()))
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
        self._exchanges_s.append(self._looked_at_s)
        self._twin = False

    def _is_there_a_twin(self, before: Sequence[Mapping[str, Entry]]) -> bool:
        """In what we have taken the place of by publishing."""
        sight = Sight()
        for replica in before:
            if self._identity.peer_id in replica:
                self._check(self._identity.peer_id, replica[self._identity.peer_id], sight)
        return sight.twin

    def _check(self, peer_id: str, entry: Entry, sight: Sight) -> Announcement | None:
        """What another peer has signed, if it can be used now."""
        now = time.time()
        try:
            announcement = _verified(entry.value, self._swarm, peer_id)
            if not announcement.published_at_s - directory.MAX_CLOCK_ERROR_S <= now < announcement.expires_at_s:
                raise WireError(Reason.STALE, "it has expired, or is published in the future")
        except WireError as error:
            sight.rejected.add((peer_id, error.reason))
            return None
        if peer_id == self._identity.peer_id:
            later = announcement.published_at_s > self._started_at_s
            sight.twin |= later and announcement.instance != self._instance
            return None
        return announcement

    async def _notice(self, dht: Dht, announcement: Announcement, claimed: Collection[str]) -> Notice:
        seen = await dht.addresses.address_of(PeerID.from_base58(announcement.peer_id))
        return Notice(
            peer_id=announcement.peer_id,
            digest=announcement.digest,
            content=announcement,
            address=seen if seen != UNKNOWN else _agreed(claimed),
            age=self._age(announcement.published_at_s),
        )

    def _age(self, published_at_s: float) -> int | None:
        """In our exchanges since; a node in its first rounds takes all there is."""
        age = sum(looked_s > published_at_s for looked_s in self._exchanges_s)
        return None if self._exchanges_s.maxlen == age else age


def _agreed(claimed: Collection[str]) -> str:
    """The address that most replicas say an entry came from. One alone may make it up: to hide behind somebody else's,
    or to share in the name of many."""
    address, count = max(Counter(claimed).items(), key=lambda pair: (pair[1], pair[0]), default=(UNKNOWN, 0))
    return address if count >= MIN_WITNESSES else UNKNOWN


@lru_cache(maxsize=4096)
def _verified(raw: bytes, swarm: str, peer_id: str) -> Announcement:
    """Remembered, because every replica sends the same and every look shows it again."""
    return wire.read_announcement(raw, swarm=swarm, peer_id=peer_id)
