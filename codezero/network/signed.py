"""What peers of a native swarm publish under a topic: signed announcements in directories, bodies under their hash."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from hivemind.p2p import PeerID

from codezero.identity.key import Identity
from codezero.network import directory, wire
from codezero.network.board import Notice, Sight
from codezero.network.dht.addresses import UNKNOWN, is_direct
from codezero.network.dht.dht import Dht, DirectoryEntry
from codezero.network.wire import Announcement, Reason, WireError

HasOldReaders = Callable[[Dht], Awaitable[bool]]
"""Says whether some of those who read what is published speak version 1 only."""
MIN_WITNESSES = 2
"""Replicas that must say the same of a publisher's address where we have seen no connection of it."""


class SignedTopic:
    """One topic of one swarm. `instance` is a random number of this process, which tells it from another with the same
    key. A notice's content is its announcement."""

    def __init__(self, swarm: str, topic: str, identity: Identity, instance: str) -> None:
        self._swarm, self._topic, self._identity, self._instance = swarm, topic, identity, instance
        self._started_at_s = time.time()
        self.twin = False
        """Whether publishing has shown one; for the owner to forget."""
        self.old_peers: frozenset[str] | None = None
        """Peers in the last look that speak version 1 only; None before the first."""

    async def publish(
        self,
        dht: Dht,
        body: bytes,
        ttl_s: float,
        has_old_readers: HasOldReaders,
        *,
        round_number: int = 0,
        shards: Sequence[str] = ("",),
    ) -> bool:
        """Has a body kept and announces it in the first of the shards that has room; False if no node keeps it. In
        version 1 too where a reader speaks no other, and where the nodes asked keep no other.

        Raises WireError: it is larger than other nodes take.
        """
        now = time.time()
        announcement = Announcement(
            swarm=self._swarm,
            topic=self._topic,
            peer_id=self._identity.peer_id,
            round=round_number,
            published_at_s=now,
            expires_at_s=now + ttl_s,
            instance=self._instance,
            digest=hashlib.sha256(body).digest(),
            size=len(body),
        )
        if not await _keep(dht, body, announcement):
            return False
        kept, is_read_by_old = await asyncio.gather(
            self._announce(dht, announcement, wire.VERSION, shards), has_old_readers(dht)
        )
        if kept and not is_read_by_old:
            return True
        old_body = wire.to_version_1(body)
        if old_body != body:
            announcement = replace(announcement, digest=hashlib.sha256(old_body).digest(), size=len(old_body))
            if not await _keep(dht, old_body, announcement):
                return kept
        return await self._announce(dht, announcement, 1, shards) or kept

    async def look(self, dht: Dht, shards: Iterable[str] = ("",)) -> Sight:
        """The newest announcement of each peer that can be used now, of two as new the one in the later version; ages
        are not known here."""
        keys = [directory.directory_key(self._swarm, self._topic, shard) for shard in shards]
        shown = await asyncio.gather(*[dht.read(key) for key in keys])
        sight = Sight(twin=self.twin)
        newest: dict[str, tuple[float, int, Announcement]] = {}
        claims: dict[str, dict[str, str]] = {}
        for place, entry in (pair for replicas in shown for replica in replicas for pair in replica.items()):
            peer_id = directory.peer_of(place)
            announcement = self._check(peer_id, entry, sight)
            if announcement is None:
                continue
            if entry.address is not None:
                claims.setdefault(peer_id, {})[entry.witness] = entry.address
            found = (announcement.published_at_s, entry.value[0], announcement)
            if peer_id not in newest or newest[peer_id][:2] < found[:2]:
                newest[peer_id] = found
        self.old_peers = frozenset(peer_id for peer_id, (_, version, _) in newest.items() if version == 1)
        for peer_id, (_, _, announcement) in newest.items():
            sight.notices.append(await _notice(dht, announcement, claims.get(peer_id, {}).values()))
        return sight

    async def fetch(self, dht: Dht, announcement: Announcement) -> bytes:
        """The body that was announced. Raises WireError: nobody has it."""

        def is_right(body: bytes) -> bool:
            return hashlib.sha256(body).digest() == announcement.digest

        body = await dht.fetch(directory.body_key(announcement.digest), is_right)
        if body is None:
            raise WireError(Reason.UNAVAILABLE, "no node near has the body")
        return body

    async def _announce(self, dht: Dht, announcement: Announcement, version: int, shards: Iterable[str]) -> bool:
        """False if no node keeps it."""
        signed = wire.sign_announcement(announcement, self._identity, version)
        place = directory.slot(announcement.peer_id, version)
        for shard in shards:
            key = directory.directory_key(self._swarm, self._topic, shard)
            kept, before = await dht.replace(key, place, signed, announcement.expires_at_s)
            self.twin |= self._is_there_a_twin(before)
            if any(kept):
                return True
        return False

    def _is_there_a_twin(self, before: Sequence[Mapping[str, DirectoryEntry]]) -> bool:
        """In what we have taken the place of by publishing."""
        sight = Sight()
        for place, entry in (pair for replica in before for pair in replica.items()):
            if directory.peer_of(place) == self._identity.peer_id:
                self._check(self._identity.peer_id, entry, sight)
        return sight.twin

    def _check(self, peer_id: str, entry: DirectoryEntry, sight: Sight) -> Announcement | None:
        """What another peer has signed, if it can be used now."""
        now = time.time()
        try:
            announcement = _verified(entry.value, self._swarm, self._topic, peer_id)
            if not announcement.published_at_s - directory.MAX_CLOCK_ERROR_S <= now < announcement.expires_at_s:
                raise WireError(Reason.STALE, "it has expired, or is published in the future")
        except WireError as error:
            sight.rejected.add((peer_id, error.reason))
            return None
        if peer_id == self._identity.peer_id:
            later = announcement.published_at_s > self._started_at_s
            sight.twin |= later and announcement.instance != self._instance
            sight.own = True
            return None
        return announcement


async def _keep(dht: Dht, body: bytes, announcement: Announcement) -> bool:
    return any(await dht.store(directory.body_key(announcement.digest), None, body, announcement.expires_at_s))


async def _notice(dht: Dht, announcement: Announcement, claimed: Collection[str]) -> Notice:
    seen = await dht.addresses.address_of(PeerID.from_base58(announcement.peer_id))
    return Notice(
        peer_id=announcement.peer_id,
        digest=announcement.digest,
        content=announcement,
        address=seen if seen != UNKNOWN else _agreed(claimed),
        is_direct=is_direct(seen),
    )


def _agreed(claimed: Collection[str]) -> str:
    """The address that most replicas say an entry came from. One alone may make it up: to hide behind somebody else's,
    or to share in the name of many."""
    address, count = max(Counter(claimed).items(), key=lambda pair: (pair[1], pair[0]), default=(UNKNOWN, 0))
    return address if count >= MIN_WITNESSES else UNKNOWN


@lru_cache(maxsize=4096)
def _verified(raw: bytes, swarm: str, topic: str, peer_id: str) -> Announcement:
    """Remembered, because every replica sends the same and every look shows it again."""
    return wire.read_announcement(raw, swarm=swarm, topic=topic, peer_id=peer_id)
