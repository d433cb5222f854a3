"""A topic of a native swarm: signed announcements in directories, and bodies under their hash."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from hivemind.p2p import PeerID

from codezero.identity.key import Identity
from codezero.network import directory, wire
from codezero.network.board import Notice, Sight
from codezero.network.dht.addresses import UNKNOWN, is_direct, is_group
from codezero.network.dht.dht import Dht
from codezero.network.dht.dictionary import DirectoryEntry
from codezero.network.wire import Announcement, Reason, WireError

MIN_WITNESSES = 2
"""The number of addresses whose replicas must agree on a publisher's address if this node has seen no connection of it:
peer ids are free."""


class SignedTopic:
    """One topic of one swarm. `instance` is a random number of this process, which tells it from another process with
    the same key. The content of a notice is its announcement."""

    def __init__(self, swarm: str, topic: str, identity: Identity, instance: str) -> None:
        self._swarm, self._topic, self._identity, self._instance = swarm, topic, identity, instance
        self._started_at_s = time.time()
        self.duplicate_identity = False
        """True if another live node with this node's key was seen. The owner of the topic resets it."""

    async def publish(
        self, dht: Dht, body: bytes, ttl_s: float, *, round_number: int = 0, shards: Sequence[str] = ("",)
    ) -> bool:
        """Stores a body and announces it in the first shard that has space. Returns False if no node keeps it. Raises
        WireError: other nodes would refuse the announcement."""
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
        if not any(await dht.store(directory.body_key(announcement.digest), None, body, announcement.expires_at_s)):
            return False
        signed = wire.sign_announcement(announcement, self._identity)
        for shard in shards:
            key, subkey = self._key(shard), directory.slot(announcement.peer_id)
            kept, before = await dht.replace(key, subkey, signed, announcement.expires_at_s)
            for at, entry in (pair for replica in before for pair in replica.items()):
                if directory.peer_of(at) == self._identity.peer_id:
                    with contextlib.suppress(WireError):
                        self._note_own(self._checked(self._identity.peer_id, entry))
            if any(kept):
                return True
        return False

    async def look(self, dht: Dht, shards: Iterable[str] = ("",)) -> Sight:
        """Returns the newest valid announcement of each peer. Ages are not set."""
        shown = await asyncio.gather(*[dht.read(self._key(shard)) for shard in shards])
        sight = Sight()
        newest: dict[str, Announcement] = {}
        claims: dict[str, dict[str, str]] = {}
        for subkey, entry in (pair for replicas in shown for replica in replicas for pair in replica.items()):
            peer_id = directory.peer_of(subkey)
            try:
                announcement = self._checked(peer_id, entry)
            except WireError as error:
                sight.rejected.add((peer_id, error.reason))
                continue
            if peer_id == self._identity.peer_id:
                sight.own = True
                self._note_own(announcement)
                continue
            if entry.address is not None and is_group(entry.address):
                witness = dht.addresses.seen(PeerID.from_base58(entry.witness))
                claims.setdefault(peer_id, {})[witness] = entry.address
            if peer_id not in newest or newest[peer_id].published_at_s < announcement.published_at_s:
                newest[peer_id] = announcement
        for peer_id, announcement in newest.items():
            sight.notices.append(await _notice(dht, announcement, claims.get(peer_id, {}).values()))
        return sight

    async def fetch(self, dht: Dht, announcement: Announcement) -> bytes:
        """Returns the body that was announced. Raises WireError: no node has it."""

        def is_right(body: bytes) -> bool:
            return hashlib.sha256(body).digest() == announcement.digest

        body = await dht.fetch(directory.body_key(announcement.digest), is_right)
        if body is None:
            raise WireError(Reason.UNAVAILABLE, "no node near has the body")
        return body

    def _key(self, shard: str) -> str:
        return directory.directory_key(self._swarm, self._topic, shard)

    def _checked(self, peer_id: str, entry: DirectoryEntry) -> Announcement:
        """Returns the announcement in a peer's entry. Raises WireError: it is not the peer's, or not valid now."""
        now = time.time()
        announcement = _verified(entry.value, self._swarm, self._topic, peer_id)
        if not announcement.published_at_s - directory.MAX_CLOCK_ERROR_S <= now < announcement.expires_at_s:
            raise WireError(Reason.STALE, "it has expired, or is published in the future")
        return announcement

    def _note_own(self, announcement: Announcement) -> None:
        """Notes an announcement with this node's key, which is another live node's if it is newer than this process."""
        later = announcement.published_at_s > self._started_at_s
        self.duplicate_identity |= later and announcement.instance != self._instance


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
    """Returns the address that most witnesses name as an entry's origin, `UNKNOWN` if it is only one: a single party
    may lie, to hide behind another's address or to get the shares of many."""
    address, count = max(Counter(claimed).items(), key=lambda pair: (pair[1], pair[0]), default=(UNKNOWN, 0))
    return address if count >= MIN_WITNESSES else UNKNOWN


@lru_cache(maxsize=4096)
def _verified(raw: bytes, swarm: str, topic: str, peer_id: str) -> Announcement:
    """Calls `read_announcement`, cached because every replica and every look show the same announcements."""
    return wire.read_announcement(raw, swarm=swarm, topic=topic, peer_id=peer_id)
