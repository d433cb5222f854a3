"""Where the records of a native swarm lie: bodies under their own hash, announcements in directories cut into shards.

A directory holds the newest announcement of each of its peers. The shard of a peer is a prefix of its hash, as many
bits long as it takes for about `SHARD_PEERS` peers to share one, so what a node reads and writes in a round does not
depend on how many others there are. Publisher and reader each estimate the depth; a reader also looks where estimates
that are somewhat off would have led, and a publisher that finds its shard full goes one bit deeper.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Sequence

import msgspec

from codezero.dht.dht import key_id
from codezero.dht.records import Item, Version
from codezero.dht.server import RecordRules
from codezero.network import wire
from codezero.network.wire import WireError

SHARD_PEERS = 16
"""Peers to a shard that is aimed at; a server keeps four times as many."""
MAX_DEPTH = 20
SHARDS_READ = 2
"""Shards that a node reads in a round, chosen at random: twice 16 peers are more than it can use."""
DEPTH_ERROR = 0.7
"""How far off an estimated depth may be: the size of the swarm is estimated to a fifth, about 0.3 bits, twice over."""
MAX_CLOCK_ERROR_S = 60.0


def depth(num_nodes: float) -> float:
    """The depth at which `SHARD_PEERS` of so many nodes share a shard; a whole number of bits only after rounding."""
    return min(max(math.log2(max(num_nodes, 1) / SHARD_PEERS), 0.0), MAX_DEPTH)


def shard_of(swarm: str, peer_id: str, depth: int) -> str:
    """The bits that name a peer's shard."""
    digest = hashlib.sha256(f"{swarm}/{peer_id}".encode()).digest()
    return format(int.from_bytes(digest[:4], "big"), "032b")[:depth]


def shards_to_read(num_nodes: float, dice: random.Random) -> Sequence[str]:
    """Shards around random points, at the likely depths; all shards while there are no more than are read anyway."""
    exact = depth(num_nodes)
    depths = {round(max(exact + error, 0.0)) for error in (-DEPTH_ERROR, 0.0, DEPTH_ERROR)}
    found: dict[str, None] = {}
    for bits in sorted(depths):
        for point in dice.sample(range(2**bits), min(SHARDS_READ, 2**bits)):
            found[format(point, f"0{bits}b") if bits else ""] = None
    return tuple(found)


def directory_key(swarm: str, shard: str) -> str:
    """The DHT key of a shard; its entries are announcements by peer id."""
    return f"codezero/1/{swarm}/rollouts/{shard}"


def body_key(digest: bytes) -> str:
    """The DHT key of the groups whose packed form has this SHA-256."""
    return f"codezero/1/body/{digest.hex()}"


def _accept(item: Item) -> Version | None:
    """A record is a body under its own hash, or an announcement signed by the peer it stands under, in one of that
    peer's shards, for as long as the peer says. Of a peer's announcements the one published last stays."""
    try:
        content = msgspec.msgpack.decode(item.value, type=bytes)
        if item.subkey is None:
            is_body = item.key == key_id(body_key(hashlib.sha256(content).digest()))
            return (0.0, item.expires_at_s) if is_body else None
        announcement = wire.read_announcement(content, peer_id=item.subkey)
    except (msgspec.DecodeError, WireError):
        return None
    fits = (
        item.expires_at_s == announcement.expires_at_s
        and announcement.published_at_s <= time.time() + MAX_CLOCK_ERROR_S
        and any(
            item.key == key_id(directory_key(announcement.swarm, shard_of(announcement.swarm, item.subkey, bits)))
            for bits in range(MAX_DEPTH + 1)
        )
    )
    return (announcement.published_at_s, announcement.expires_at_s) if fits else None


RULES = RecordRules(accept=_accept, attest=True, own_places=True)
"""What servers of native swarms keep, of whichever swarm."""
