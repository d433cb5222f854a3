"""The routing table, and requests to other nodes, whose answers are untrusted.

hivemind's own calls parse answers before anything is checked, and peer ids in quadratic time, so that one message of 4
MB blocks the node for hours. Its routing table keeps every id that any node names.
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
"""The most bytes of a peer id; real ones have 34 to 42."""
_FAILURES = (P2PDaemonError, P2PHandlerError, OSError, EOFError, DecodeError, asyncio.TimeoutError)
"""The errors of a call: no connection, a failure in the other node, the death of the daemon, an unreadable answer."""


def node_id_of(peer_id: PeerID) -> DHTID:
    """Returns the node id of a codezero node: its position in the key space. It follows from the peer id, so that
    nobody can choose it."""
    return DHTID.generate(source=peer_id.to_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupReply:
    """A node's answer to a lookup: what it has under a key, and the nodes nearer to the key that it knows."""

    value: bytes | None
    is_directory: bool
    nearer: Mapping[DHTID, PeerID]


class Neighbours(RoutingTable):  # type: ignore[misc]
    """A routing table with one id a peer, one peer an id, and at most `bucket_size` spare nodes in each bucket."""

    def __init__(self, own_id: DHTID, bucket_size: int, takes: Callable[[DHTID, PeerID], bool]) -> None:
        super().__init__(own_id, bucket_size, depth_modulo=5)  # hivemind's default
        self.takes = takes
        """Returns True if a peer may have a node id."""

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

    def split_bucket(self, index: int) -> None:
        """Splits a bucket. hivemind leaves a node at the very bound in the lower half, where it is not looked for."""
        super().split_bucket(index)
        lower, upper = self.buckets[index : index + 2]
        bound = DHTID(upper.lower)
        for nodes in (lower.nodes_to_peer_id, lower.replacement_nodes):
            if (peer_id := nodes.pop(bound, None)) is not None:
                upper.add_or_update_node(bound, peer_id)


async def find(protocol: DHTProtocol, peer: PeerID, key: DHTID) -> LookupReply | None:
    """Asks a node for a key. Returns None if it gives no usable answer. If it answers and is no client, it is
    put into the routing table."""
    request = dht_pb2.FindRequest(keys=[key.to_bytes()], peer=protocol.node_info)
    try:
        response = await protocol.get_stub(peer).rpc_find(request, timeout=protocol.wait_timeout)
    except _FAILURES:
        await protocol.update_routing_table(None, peer, responded=False)
        return None
    if len(response.peer.node_id) == DHTID.HASH_NBYTES:  # clients have none
        await protocol.update_routing_table(DHTID.from_bytes(response.peer.node_id), peer, responded=True)
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
    """Returns a PeerID, cached since hivemind takes longer to make one than to read an answer with twenty takes."""
    return PeerID(raw)


def _nearer(protocol: DHTProtocol, result: dht_pb2.FindResult) -> Mapping[DHTID, PeerID]:
    found = {}
    named = zip(result.nearest_node_ids, result.nearest_peer_ids, strict=False)
    for node_id, raw in islice(named, protocol.bucket_size):
        if len(node_id) == DHTID.HASH_NBYTES and len(raw) <= MAX_PEER_ID_BYTES:
            uid, peer_id = DHTID.from_bytes(node_id), _peer_id(raw)
            if peer_id != protocol.p2p.peer_id and protocol.routing_table.takes(uid, peer_id):
                found[uid] = peer_id
    return found
