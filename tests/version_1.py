"""A node that speaks version 1 of the native format only: what commit 171a78c sends, takes and keeps.

Frozen: it uses nothing of `codezero.network`, and is not changed with it.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import msgspec
import zstandard
from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from codezero.identity.key import Identity, is_signed_by, peer_id_of
from codezero.network.dht.dht import Dht, key_id
from codezero.network.dht.records import OfferedRecord, Version
from codezero.network.dht.server import RecordRules

VERSION = 1
PREFIX = b"codezero announcement\0\x01"
MAX_ANNOUNCEMENT_BYTES, MAX_RECORD_BYTES, MAX_BODY_BYTES = 2048, 256 * 1024, 2 * 2**20
MAX_DEPTH = 20
UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)

Count = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
ModelId = Annotated[str, Meta(max_length=256)]
Text = Annotated[str, Meta(max_length=2**16)]
Filled = Annotated[str, Meta(min_length=1, max_length=2**16)]
Level = Annotated[int, Meta(ge=1, le=5)]
Seconds = Annotated[float, Meta(ge=0, le=1e11)]


class Refused(Exception):
    """Carries the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    swarm: Name
    topic: Annotated[str, Meta(pattern=r"^(rollouts|proposals|feedback/[1-9A-HJ-NP-Za-km-z]{1,64})\Z")]
    peer_id: Name
    round: Count
    published_at_s: Seconds
    expires_at_s: Seconds
    instance: Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    size: Count


class Envelope(Struct):
    content: bytes
    public_key: bytes
    signature: bytes


class Origin(str, Enum):
    MBPP = "mbpp"
    CODE_CONTESTS = "code_contests"
    BUILTIN = "builtin"
    PROPOSER = "proposer"


class Finish(str, Enum):
    STOP = "stop"
    LENGTH = "length"


class Task(Struct):
    origin: Origin
    question: Text
    tests: Text
    difficulty: Level | None


class Rollout(Struct):
    text: Text
    finish: Finish


class Group(Struct):
    model_id: ModelId
    policy_version: Count
    task: Task
    rollouts: Annotated[list[Rollout], Meta(min_length=1, max_length=64)]


class Proposal(Struct):
    model_id: ModelId
    question: Filled
    tests: Filled
    difficulty: Level | None


class Marks(Struct):
    proposal_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
    p_correct: Annotated[list[Annotated[float, Meta(ge=0, le=1)]], Meta(min_length=1, max_length=64)]
    rewards: Annotated[list[Annotated[float, Meta(ge=-1.2 - 1e-6, le=1.2 + 1e-6)]], Meta(min_length=1, max_length=64)]


BODIES = {
    "rollouts": Decoder(Annotated[list[Group], Meta(max_length=64)]),
    "proposals": Decoder(Annotated[list[Proposal], Meta(max_length=32)]),
    "feedback": Decoder(Annotated[list[Marks], Meta(max_length=64)]),
}


def pack(items: list) -> bytes:
    return zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(items))


def unpack(topic: str, body: bytes, announcement: Announcement) -> list:
    if len(body) > MAX_RECORD_BYTES:
        raise Refused("oversized")
    if len(body) != announcement.size or hashlib.sha256(body).digest() != announcement.digest:
        raise Refused("bad_signature")
    if not 0 <= zstandard.frame_content_size(body) <= MAX_BODY_BYTES:
        raise Refused("oversized")
    plain = zstandard.ZstdDecompressor().decompress(body, allow_extra_data=False)
    return exactly(BODIES[topic.partition("/")[0]], plain)


def exactly(decoder: Decoder, raw: bytes):
    try:
        value = decoder.decode(raw)
    except UNREADABLE as error:
        raise Refused("malformed") from error
    if msgspec.msgpack.encode(value) != raw:
        raise Refused("malformed")
    return value


def sign(announcement: Announcement, identity: Identity) -> bytes:
    content = msgspec.msgpack.encode(announcement)
    envelope = Envelope(content, identity.public_key, identity.sign(PREFIX + content))
    return bytes([VERSION]) + msgspec.msgpack.encode(envelope)


def read(raw: object, peer_id: str, swarm: str | None = None, topic: str | None = None) -> Announcement:
    if not isinstance(raw, bytes) or len(raw) > MAX_ANNOUNCEMENT_BYTES:
        raise Refused("oversized")
    if raw[:1] != bytes([VERSION]):
        raise Refused("wrong_version")
    envelope = exactly(Decoder(Envelope), raw[1:])
    found = exactly(Decoder(Announcement), envelope.content)
    if peer_id_of(envelope.public_key) != found.peer_id:
        raise Refused("wrong_peer")
    if not is_signed_by(envelope.public_key, PREFIX + envelope.content, envelope.signature):
        raise Refused("bad_signature")
    if found.peer_id != peer_id or swarm not in (None, found.swarm) or topic not in (None, found.topic):
        raise Refused("wrong place")
    return found


def directory_key(swarm: str, topic: str, shard: str = "") -> str:
    return f"codezero/1/{swarm}/{topic}/{shard}"


def body_key(digest: bytes) -> str:
    return f"codezero/1/body/{digest.hex()}"


def accept(item: OfferedRecord) -> Version | None:
    try:
        content = msgspec.msgpack.decode(item.value, type=bytes)
        if item.subkey is None:
            is_body = item.key == key_id(body_key(hashlib.sha256(content).digest()))
            return (0.0, item.expires_at_s) if is_body else None
        one = read(content, item.subkey)
    except (msgspec.DecodeError, Refused):
        return None
    digest = hashlib.sha256(f"{one.swarm}/{one.peer_id}".encode()).digest()
    bits = format(int.from_bytes(digest[:4], "big"), "032b")
    shards = [bits[:depth] for depth in range(MAX_DEPTH + 1 if one.topic == "rollouts" else 1)]
    fits = (
        item.expires_at_s == one.expires_at_s
        and one.published_at_s <= time.time() + 60.0
        and any(item.key == key_id(directory_key(one.swarm, one.topic, shard)) for shard in shards)
    )
    return (one.published_at_s, one.expires_at_s) if fits else None


RULES = RecordRules(accept=accept, attest=True, derived_node_ids=True)


class OldPeer:
    """In a swarm so small that it has one shard."""

    def __init__(self, swarm: str, identity: Identity) -> None:
        self._swarm, self._identity = swarm, identity
        self.refused: set[tuple[str, str]] = set()
        """(name of the entry or peer id, reason)"""

    async def publish(self, dht: Dht, topic: str, items: list, ttl_s: float = 600.0) -> bool:
        body, now = pack(items), time.time()
        announcement = Announcement(
            swarm=self._swarm,
            topic=topic,
            peer_id=self._identity.peer_id,
            round=0,
            published_at_s=now,
            expires_at_s=now + ttl_s,
            instance="0123456789abcdef",
            digest=hashlib.sha256(body).digest(),
            size=len(body),
        )
        if not any(await dht.store(body_key(announcement.digest), None, body, now + ttl_s)):
            return False
        signed, own = sign(announcement, self._identity), self._identity.peer_id
        kept, _ = await dht.replace(directory_key(self._swarm, topic), own, signed, now + ttl_s)
        return any(kept)

    async def read(self, dht: Dht, topic: str) -> dict[str, list]:
        """The items of the newest publication of each other peer."""
        newest: dict[str, Announcement] = {}
        for replica in await dht.read(directory_key(self._swarm, topic)):
            for name, entry in replica.items():
                try:
                    one = read(entry.value, name, self._swarm, topic)
                except Refused as error:
                    self.refused.add((name, str(error)))
                    continue
                known = newest.get(name)
                if name != self._identity.peer_id and (known is None or known.published_at_s < one.published_at_s):
                    newest[name] = one
        found = {}
        for name, one in newest.items():
            body = await dht.fetch(body_key(one.digest), lambda body, one=one: _is_of(body, one))
            if body is None:
                self.refused.add((name, "unavailable"))
                continue
            try:
                found[name] = unpack(topic, body, one)
            except Refused as error:
                self.refused.add((name, str(error)))
        return found


def _is_of(body: bytes, announcement: Announcement) -> bool:
    return hashlib.sha256(body).digest() == announcement.digest
