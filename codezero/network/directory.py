"""The keys of a native swarm's records: bodies are stored under their own hash, announcements in directories.

A directory has the newest announcement of each of its peers. Proposers are few: all proposals share one directory, and
the feedback to each proposer has one, of which a reader takes as many as servers keep. Rollouts are sharded. The shard
of a peer is a prefix of its hash, with as many bits as it takes for about `SHARD_PEERS` peers to share one, so what a
node reads and writes in a round does not grow with the swarm. Publisher and reader each estimate this depth; a reader
also looks in the shards of a slightly different estimate, and a publisher whose shard is full goes one bit deeper.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Iterator, Sequence

import msgspec

from codezero.network import wire
from codezero.network.dht.dht import key_id
from codezero.network.dht.records import OfferedRecord, Version
from codezero.network.dht.server import RecordRules
from codezero.network.wire import ROLLOUTS, VERSION, Announcement, WireError

SHARD_PEERS = 24
"""The intended number of peers in a shard; a server keeps 64."""
MAX_DEPTH = 20
"""The most bits of a shard."""
DEPTH_TOLERANCE = 0.4
"""The difference in bits that is allowed between the depths of publisher and reader: the estimate of a swarm's size is
off by a tenth or two, and a fifth is 0.3 bits."""
MAX_CLOCK_ERROR_S = 60.0
"""The most seconds by which an announcement may be dated in the future, since clocks differ."""


def depth(num_nodes: float) -> float:
    """Returns the number of bits, not rounded, at which `SHARD_PEERS` of `num_nodes` nodes share a shard."""
    return min(max(math.log2(max(num_nodes, 1) / SHARD_PEERS), 0.0), MAX_DEPTH)


def shard_of(swarm: str, peer_id: str, depth: int) -> str:
    """Returns the bits that name a peer's shard, as text of 0 and 1."""
    digest = hashlib.sha256(f"{swarm}/{peer_id}".encode()).digest()
    return format(int.from_bytes(digest[:4], "big"), "032b")[:depth]


def shards_to_read(num_nodes: float, rng: random.Random) -> Sequence[str]:
    """Returns two random sibling shards of the estimated depth, and their parent if some peers may use its depth. They
    have 25 to 50 peers, which is more than a node can use."""
    exact = depth(num_nodes)
    bits = round(exact + DEPTH_TOLERANCE)
    if bits == 0:
        return ("",)
    parent = format(rng.randrange(2 ** (bits - 1)), "032b")[32 - (bits - 1) :]
    halves = (parent + "0", parent + "1")
    return (parent, *halves) if round(max(exact - DEPTH_TOLERANCE, 0.0)) < bits else halves


def directory_key(swarm: str, topic: str, shard: str = "") -> str:
    """Returns the DHT key of a topic's directory, or of one shard of it; its entries are announcements by `slot`."""
    return f"codezero/1/{swarm}/{topic}/{shard}"


def slot(peer_id: str) -> str:
    """Returns the subkey of a peer's announcement in a directory: it names the version, so that announcements of a
    later one can stand beside it."""
    return f"{peer_id}/{VERSION}"


def peer_of(subkey: str) -> str:
    """Returns the peer id of a slot."""
    return subkey.partition("/")[0]


def body_key(digest: bytes) -> str:
    """Returns the DHT key of the body with this SHA-256."""
    return f"codezero/1/body/{digest.hex()}"


def _accept(item: OfferedRecord) -> Version | None:
    """Accepts bodies under their own hash, and announcements in their signer's slot in a directory of their topic, with
    the signed expiry. Of a peer's announcements the one that was published last is kept."""
    try:
        content = msgspec.msgpack.decode(item.value, type=bytes)
        if item.subkey is None:
            is_body = item.key == key_id(body_key(hashlib.sha256(content).digest()))
            return (0.0, item.expires_at_s) if is_body else None
        announcement = wire.read_announcement(content, peer_id=peer_of(item.subkey))
    except (msgspec.DecodeError, WireError):
        return None
    fits = (
        item.subkey == slot(announcement.peer_id)
        and item.expires_at_s == announcement.expires_at_s
        and announcement.published_at_s <= time.time() + MAX_CLOCK_ERROR_S
        and any(item.key == key_id(key) for key in _keys_of(announcement))
    )
    return (announcement.published_at_s, announcement.expires_at_s) if fits else None


def _keys_of(announcement: Announcement) -> Iterator[str]:
    """Yields an announcement's keys: for rollouts the peer's shards of any depth, else the topic's one directory."""
    swarm, topic = announcement.swarm, announcement.topic
    for bits in range(MAX_DEPTH + 1 if topic == ROLLOUTS else 1):
        yield directory_key(swarm, topic, shard_of(swarm, announcement.peer_id, bits))


RULES = RecordRules(accept=_accept, is_native=True)
"""The rules by which servers of any native swarm keep records."""
