"""A peer that asks a server whatever it likes, over a network in memory."""

from __future__ import annotations

import hashlib
import time

import msgpack
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2PHandlerError
from hivemind.proto import dht_pb2

from codezero.network import directory, wire
from codezero.network.dht.dht import key_id
from codezero.network.dht.dictionary import read_dictionary
from codezero.network.dht.records import OfferedRecord
from tests.unit.network.dht.memory_p2p import MemoryNetwork
from tests.unit.network.wire_builders import SWARM, announce, bin_, identity

PLAIN = DHTProtocol.IS_REGULAR_VALUE


def tag(subkey: object) -> bytes:
    return msgpack.packb(subkey)


def key(name: str) -> bytes:
    return key_id(name).to_bytes()


def body_key(body: bytes) -> bytes:
    return key(directory.body_key(hashlib.sha256(body).digest()))


def slot(name: str = "alice") -> str:
    return directory.slot(identity(name).peer_id)


def signed(name: str = "alice", published_ago_s: float = 0.0, ttl_s: float = 60.0, swarm: str = SWARM, **changes):
    """An announcement as it lies in the DHT, its key's name and its expiry."""
    own = identity(name)
    published_at_s = time.time() - published_ago_s
    fields = {"published_at_s": published_at_s, "expires_at_s": published_at_s + ttl_s, "swarm": swarm, **changes}
    one = announce(peer_id=own.peer_id, **fields)
    where = directory.directory_key(swarm, one.topic)
    return bin_(wire.sign_announcement(one, own)), where, one.expires_at_s


class Asker:
    """A peer that sends the server what it likes."""

    def __init__(self, network: MemoryNetwork, target, peer) -> None:
        self.target, self.peer = target, peer
        self._network = network

    @classmethod
    async def create(cls, rules=directory.RULES, name: str = "mallory", address: str = "6.6.6.6"):
        network = MemoryNetwork()
        target = await network.dht("server", rules=rules)
        return cls(network, target, await network.dht(name, rules=rules, address=address))

    async def another(self, name: str, address: str):
        return Asker(self._network, self.target, await self._network.dht(name, address=address))

    async def call(self, rpc: str, request, answer_type):
        return await self.peer.p2p.call_protobuf_handler(
            self.target.p2p.peer_id, f"DHTProtocol.rpc_{rpc}", request, answer_type
        )

    async def store(self, *records: tuple[bytes, bytes, bytes, float], **columns) -> list[bool]:
        names = ("keys", "subkeys", "values", "expiration_time")
        fields = {name: [record[i] for record in records] for i, name in enumerate(names)}
        request = dht_pb2.StoreRequest(in_cache=[False] * len(records), **{**fields, **columns})
        return list((await self.call("store", request, dht_pb2.StoreResponse)).store_ok)

    async def find(self, *names: str):
        request = dht_pb2.FindRequest(keys=[key(name) for name in names])
        return (await self.call("find", request, dht_pb2.FindResponse)).results

    async def entries(self, name: str) -> dict[str, bytes]:
        (result,) = await self.find(name)
        return {subkey: value for subkey, value, _ in read_dictionary(result.value)}

    @property
    def server(self):
        return self.target._server


async def is_refused(call, match: str = "") -> bool:
    """Whether the other side's handler raises, which must then say this."""
    try:
        await call
    except P2PHandlerError as error:
        if match not in str(error):
            raise
        return True
    return False


async def is_stored(record: tuple[bytes, bytes, bytes, float], rules=directory.RULES) -> bool:
    """By a server that has nothing yet."""
    (stored,) = await (await Asker.create(rules)).store(record)
    return stored


def item_of(name: str, subkey: str | None, content: bytes, ttl_s: float = 60.0) -> OfferedRecord:
    return OfferedRecord(
        key=key_id(name), subkey=subkey, value=bin_(content), expires_at_s=time.time() + ttl_s, sender="somebody"
    )
