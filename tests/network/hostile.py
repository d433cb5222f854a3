"""What a hostile node does with a real daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import wire
from codezero.network.dht.dht import key_id
from codezero.network.dht.dictionary import pack_dictionary
from tests.network.nodes import Node
from tests.unit.network.wire_builders import announce

TTL_S = 600.0


def signed(node: Node) -> bytes:
    """An announcement by this node's key."""
    now = time.time()
    one = announce(b"body", peer_id=node.peer_id, swarm=node.config.name, published_at_s=now, expires_at_s=now + TTL_S)
    return wire.sign_announcement(one, node.identity)


def answers(node: Node, rpc: str, answer: bytes | None) -> None:
    """From now on the node gives this answer whatever it is asked, or none at all."""

    async def handler(request: bytes, remote_id: PeerID) -> bytes:
        if answer is None:
            await asyncio.sleep(3600)
        return answer

    node.dht.p2p._client.control.unary_handlers[f"DHTProtocol.rpc_{rpc}"] = handler


def shows(node: Node, entries: Sequence[tuple[str, bytes]]) -> None:
    """Has these (peer id, content), as a replica of whatever directory."""
    packed = [(name, msgspec.msgpack.encode(content), time.time() + TTL_S) for name, content in entries]
    result = dht_pb2.FindResult(
        type=dht_pb2.FOUND_DICTIONARY, value=pack_dictionary(packed), expiration_time=time.time() + TTL_S
    )
    answers(node, "find", dht_pb2.FindResponse(results=[result]).SerializeToString())


def sends(node: Node, target: Node, rpc: str, request) -> object:
    """Calls a node as no honest one would; returns the answer or what went wrong."""
    stub = node.dht._protocol.get_stub(PeerID.from_base58(target.peer_id))

    async def call():
        try:
            return await getattr(stub, f"rpc_{rpc}")(request, timeout=5)
        except Exception as error:  # whatever it is, it is of interest to the test only
            return error

    return node.link.run(call())


def store_request(key: str, subkey: str, value: bytes, count: int = 1) -> dht_pb2.StoreRequest:
    return dht_pb2.StoreRequest(
        keys=[key_id(key).to_bytes()] * count,
        subkeys=[msgspec.msgpack.encode(subkey)] * count,
        values=[value] * count,
        expiration_time=[time.time() + TTL_S] * count,
        in_cache=[False] * count,
    )
