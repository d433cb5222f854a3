"""The nodes that a node knows, and questions to them whose answers nobody vouches for.

hivemind's own calls take answers apart before anything is checked: text forms of peer ids in quadratic time, so that
one message of 4 MB stops the node for hours. Its routing table keeps every id that anybody mentions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from google.protobuf.message import DecodeError
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID, RoutingTable
from hivemind.p2p import P2PDaemonError, P2PHandlerError, PeerID
from hivemind.proto import dht_pb2

MAX_PEER_ID_BYTES = 64
"""Peer ids have 34 to 42."""
_FAILURES = (P2PDaemonError, P2PHandlerError, OSError, EOFError, DecodeError, asyncio.TimeoutError)
"""What a call raises: no connection, the other side's handler failed, our daemon died, an unreadable answer."""


def place_of(peer_id: PeerID) -> DHTID:
    """Where in the key space a codezero node stands. It follows from the peer id, so nobody chooses it at will."""
    return DHTID.generate(source=peer_id.to_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupReply:
    """What a node has under a key, and whom it knows nearer to it."""

    value: bytes | None
    is_directory: bool
    nearer: Mapping[DHTID, PeerID]


class Neighbours(RoutingTable):  # type: ignore[misc]
    """A routing table with one place a peer, one peer a place, and as many spare nodes as places in a bucket."""

    def __init__(self, own_id: DHTID, bucket_size: int, takes: Callable[[DHTID, PeerID], bool]) -> None:
        super().__init__(own_id, bucket_size, depth_modulo=5)  # hivemind's default
        self.takes = takes
        """Whether a node may stand at a place."""

    def add_or_update_node(self, node_id: DHTID, peer_id: PeerID) -> tuple[DHTID, PeerID] | None:
        if (
            node_id == self.node_id
            or not self.takes(node_id, peer_id)
            or self.get(node_id=node_id) not in (None, peer_id)
        ):
            return None
        former = self.get(peer_id=peer_id)
        if former is not None and former != node_id:
            del self[former]
        to_ping: tuple[DHTID, PeerID] | None = super().add_or_update_node(node_id, peer_id)
        spare = self.buckets[self.get_bucket_index(node_id)].replacement_nodes
        while len(spare) > self.bucket_size:
            del self[next(iter(spare))]
        return to_ping


async def ping(protocol: DHTProtocol, peer: PeerID) -> bool:
    """Whether a node answers; one that does becomes a neighbour."""
    try:
        response = await protocol.get_stub(peer).rpc_ping(
            dht_pb2.PingRequest(peer=protocol.node_info), timeout=protocol.wait_timeout
        )
    except _FAILURES:
        await _note(protocol, peer, None)
        return False
    await _note(protocol, peer, response.peer.node_id)
    return True


async def find(protocol: DHTProtocol, peer: PeerID, key: DHTID) -> LookupReply | None:
    """Asks a node for a key; None if it does not answer."""
    request = dht_pb2.FindRequest(keys=[key.to_bytes()], peer=protocol.node_info)
    try:
        response = await protocol.get_stub(peer).rpc_find(request, timeout=protocol.wait_timeout)
    except _FAILURES:
        await _note(protocol, peer, None)
        return None
    await _note(protocol, peer, response.peer.node_id)
    if len(response.results) != 1:
        return None
    (result,) = response.results
    known = result.type in (dht_pb2.FOUND_REGULAR, dht_pb2.FOUND_DICTIONARY)
    return LookupReply(
        value=result.value if known else None,
        is_directory=result.type == dht_pb2.FOUND_DICTIONARY,
        nearer=_nearer(protocol, result),
    )


@lru_cache(maxsize=4096)
def _peer_id(raw: bytes) -> PeerID:
    """Remembered, because it takes hivemind longer to make one than us to read an answer with twenty."""
    return PeerID(raw)


def _nearer(protocol: DHTProtocol, result: dht_pb2.FindResult) -> Mapping[DHTID, PeerID]:
    found = {}
    named = zip(result.nearest_node_ids, result.nearest_peer_ids, strict=False)
    for node_id, raw in islice(named, protocol.bucket_size):
        if len(node_id) == DHTID.HASH_NBYTES and len(raw) <= MAX_PEER_ID_BYTES:
            place, peer_id = DHTID.from_bytes(node_id), _peer_id(raw)
            if peer_id != protocol.p2p.peer_id and protocol.routing_table.takes(place, peer_id):
                found[place] = peer_id
    return found


async def _note(protocol: DHTProtocol, peer: PeerID, node_id: bytes | None) -> None:
    """Enters an answer in the routing table, or the lack of one (None); a client has no place and sends b\"\"."""
    if node_id is None:
        known = protocol.routing_table.get(peer_id=peer)
        await protocol.update_routing_table(known, peer, responded=False)
    elif len(node_id) == DHTID.HASH_NBYTES:
        await protocol.update_routing_table(DHTID.from_bytes(node_id), peer, responded=True)
