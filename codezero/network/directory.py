"""Where the records of a native swarm lie: bodies under their own hash, announcements in directories.

A directory holds the newest announcement of each of its peers, in a slot for each version. Proposers are few: all
their proposals share one directory, and the feedback to each of them has one, of which a reader takes as many as
servers keep. Rollouts are cut into shards. The shard of a peer is a prefix of its hash, as many bits long as it takes
for about `SHARD_PEERS` peers to share one, so what a node reads and writes in a round does not depend on how many
others there are. Publisher and reader each estimate the depth; a reader also looks where an estimate that is somewhat
off would have led, and a publisher that finds its shard full goes one bit deeper.
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
from codezero.network.wire import ROLLOUTS, Announcement, WireError

SHARD_PEERS = 24
"""Peers to a shard that is aimed at; a server keeps 64."""
MAX_DEPTH = 20
DEPTH_ERROR = 0.4
"""How far apart the depths of a publisher and a reader may be: a swarm's size is estimated to a tenth or two, and a
fifth more or less are 0.3 bits."""
MAX_CLOCK_ERROR_S = 60.0


def depth(num_nodes: float) -> float:
    """The depth at which `SHARD_PEERS` of so many nodes share a shard; a whole number of bits only after rounding."""
    return min(max(math.log2(max(num_nodes, 1) / SHARD_PEERS), 0.0), MAX_DEPTH)


def shard_of(swarm: str, peer_id: str, depth: int) -> str:
    """The bits that name a peer's shard."""
    digest = hashlib.sha256(f"{swarm}/{peer_id}".encode()).digest()
    return format(int.from_bytes(digest[:4], "big"), "032b")[:depth]


def shards_to_read(num_nodes: float, dice: random.Random) -> Sequence[str]:
    """Two shards side by side, at a random place and the likely depth; with them the one that both lie in, where some
    may take that depth. So all of its peers are found, 25 to 50, which is more than a node can use."""
    exact = depth(num_nodes)
    bits = round(exact + DEPTH_ERROR)
    if bits == 0:
        return ("",)
    parent = format(dice.randrange(2 ** (bits - 1)), "032b")[32 - (bits - 1) :]
    halves = (parent + "0", parent + "1")
    return (parent, *halves) if round(max(exact - DEPTH_ERROR, 0.0)) < bits else halves


def directory_key(swarm: str, topic: str, shard: str = "") -> str:
    """The DHT key of a topic's directory, or of one shard of it; its entries are announcements by `slot`."""
    return f"codezero/1/{swarm}/{topic}/{shard}"


def slot(peer_id: str, version: int) -> str:
    """Where in a directory a peer's announcement of a version stands: that of version 1 where peers look for it that
    know no other. An announcement in a later version they do not keep, and pass over when others show it."""
    return peer_id if version == 1 else f"{peer_id}/{version}"


def peer_of(subkey: str) -> str:
    """The peer whose slot it is."""
    return subkey.partition("/")[0]


def body_key(digest: bytes) -> str:
    """The DHT key of the body that has this SHA-256."""
    return f"codezero/1/body/{digest.hex()}"


def _accept(item: OfferedRecord) -> Version | None:
    """A record is a body under its own hash, or an announcement in its signer's slot, in a directory of its topic, for
    as long as the signer says. Of a peer's announcements the one published last stays."""
    try:
        content = msgspec.msgpack.decode(item.value, type=bytes)
        if item.subkey is None:
            is_body = item.key == key_id(body_key(hashlib.sha256(content).digest()))
            return (0.0, item.expires_at_s) if is_body else None
        announcement = wire.read_announcement(content, peer_id=peer_of(item.subkey))
    except (msgspec.DecodeError, WireError):
        return None
    fits = (
        item.subkey == slot(announcement.peer_id, content[0])
        and item.expires_at_s == announcement.expires_at_s
        and announcement.published_at_s <= time.time() + MAX_CLOCK_ERROR_S
        and any(item.key == key_id(key) for key in _keys_of(announcement))
    )
    return (announcement.published_at_s, announcement.expires_at_s) if fits else None


def _keys_of(announcement: Announcement) -> Iterator[str]:
    """Where an announcement may stand: rollouts in any of their peer's shards, all else in one directory."""
    swarm, topic = announcement.swarm, announcement.topic
    for bits in range(MAX_DEPTH + 1 if topic == ROLLOUTS else 1):
        yield directory_key(swarm, topic, shard_of(swarm, announcement.peer_id, bits))


RULES = RecordRules(accept=_accept, attest=True, own_places=True)
"""What servers of native swarms keep, of whichever swarm."""
