"""Records in a Kademlia DHT: hivemind's DHTNode with a server of our own, written and read one replica at a time.

hivemind's own `get` decodes strangers' values inside its search, where one that cannot be decoded leaves the caller
waiting for ever, and merges what replicas say, so that one lying replica drowns the others. Here each replica's answer
stays apart, as bytes, and every question has a timeout.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from hivemind.dht.node import DHTNode
from hivemind.dht.protocol import DHTProtocol, ValidationError
from hivemind.dht.routing import DHTID
from hivemind.dht.storage import DictionaryDHTValue
from hivemind.p2p import P2P, PeerID
from hivemind.utils.timed_storage import ValueWithExpiration

from codezero.network.addresses import AddressBook
from codezero.network.server import OWN, OWNERS, Item, RecordRules, RecordServer, read_owners

REPLICAS = 3
"""Nodes that are asked to keep a record: the nearest to its key."""
READ_REPLICAS = 4
"""Nodes that are asked for a directory; one more, for when a nearer node has just come."""
MAX_FETCH_STEPS = 12
"""Nodes that are asked for a plain record before giving up; each step about halves the distance."""
BUCKET_SIZE = 20
RPC_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a directory as one replica holds it. Nothing about it has been checked."""

    value: bytes
    expires_at_s: float
    address: str | None
    """The address that brought it, as that replica says."""


def key_id(key: str) -> DHTID:
    """Where in the key space a key lies."""
    return DHTID.generate(source=key)


class Dht:
    """One node's view of the DHT. All methods run on the event loop that made it."""

    def __init__(self, p2p: P2P, node: DHTNode, addresses: AddressBook, server: RecordServer | None) -> None:
        self.p2p, self._node, self._server = p2p, node, server
        self._protocol: DHTProtocol = node.protocol
        self.addresses = addresses

    @classmethod
    async def create(cls, p2p: P2P, rules: RecordRules, serve: bool) -> Dht:
        """A node that knows nobody yet. A server keeps what the rules let through; others only use the DHT."""
        node = await DHTNode.create(
            p2p=p2p,
            node_id=DHTID.generate(source=p2p.peer_id.to_bytes()),
            bucket_size=BUCKET_SIZE,
            num_replicas=REPLICAS,
            wait_timeout=RPC_TIMEOUT_S,
            client_mode=not serve,
        )
        addresses = AddressBook(p2p)
        if not serve:
            return cls(p2p, node, addresses, None)
        server = RecordServer(node.protocol, addresses, rules)
        await node.protocol.remove_p2p_handlers(p2p)
        await node.protocol.add_p2p_handlers(p2p, wrapper=server)
        return cls(p2p, node, addresses, server)

    async def objection(self, peer_id: PeerID) -> str:
        """What a connected node finds wrong with us, a clock more than 3 s off or no way back to us; else nothing."""
        try:
            await self._protocol.call_ping(peer_id, validate=True)
        except ValidationError as error:
            return str(error)
        return ""

    async def meet(self, peer_id: PeerID) -> bool:
        """Makes a connected node a neighbour and, through it, those near to us; False if it gives no answer."""
        uid = await self._protocol.call_ping(peer_id)
        if uid is None:
            return False
        # named here because hivemind enters the answer in its table only a moment later
        await self._node.find_nearest_nodes([self._node.node_id], node_to_peer_id={uid: peer_id})
        return True

    async def look_around(self) -> None:
        """Asks the neighbours for the nodes near to us: finds new ones, forgets dead ones."""
        await self._node.find_nearest_nodes([self._node.node_id])

    def num_neighbours(self) -> int:
        return len(self._protocol.routing_table.uid_to_peer_id)

    def neighbours(self) -> Sequence[str]:
        """Peer ids of the nodes we know of."""
        return [peer.to_base58() for peer in self._protocol.routing_table.uid_to_peer_id.values()]

    def estimate_size(self) -> int:
        """About how many servers there are: exact while we know all, else from how densely they lie around us.

        k nodes within distance d of the 2^160 ids mean k * 2^160 / d in all; off by a fifth (1/sqrt(k)) as a rule.
        """
        known = self._protocol.routing_table.uid_to_peer_id
        if len(known) < BUCKET_SIZE:
            return len(known) + (self._server is not None)
        distances = heapq.nsmallest(BUCKET_SIZE, (self._node.node_id.xor_distance(uid) for uid in known))
        return max(len(known), int(BUCKET_SIZE * DHTID.MAX // (distances[-1] + 1)))

    async def store(self, key: str, subkey: str | None, value: bytes, expires_at_s: float) -> tuple[bool, ...]:
        """Asks the nearest nodes to keep a record; returns what those that answered said."""
        where, packed = key_id(key), msgspec.msgpack.encode(value)
        stored = await asyncio.gather(
            *[
                self._store_at(peer, Item(key=where, subkey=subkey, value=packed, expires_at_s=expires_at_s))
                for peer in await self._nearest(where, REPLICAS)
            ]
        )
        return tuple(answer for answer in stored if answer is not None)

    async def read(self, key: str) -> tuple[Mapping[str, Entry], ...]:
        """What each of the nearest nodes that answered has in a directory: entry by subkey."""
        where = key_id(key)
        answers = await asyncio.gather(
            *[self._read_at(peer, where) for peer in await self._nearest(where, READ_REPLICAS)]
        )
        return tuple(_entries(answer) for answer in answers if answer is not None)

    async def fetch(self, key: str, is_right: Callable[[bytes], bool]) -> bytes | None:
        """A plain record that passes the test, from the first node that has it; None if none of those near has.

        Walks towards the key one node at a time; a wrong answer costs one step.
        """
        where = key_id(key)
        own = self._server.held(where) if self._server is not None else None
        value = _unwrap(own.value) if own is not None else None
        if value is not None and is_right(value):
            return value
        known = dict(self._protocol.routing_table.get_nearest_neighbors(where, BUCKET_SIZE, exclude=self._node.node_id))
        seen = {self._node.node_id, *known}
        ahead = [(where.xor_distance(uid), uid) for uid in known]
        heapq.heapify(ahead)
        for _ in range(MAX_FETCH_STEPS):
            if not ahead:
                break
            found = await self._protocol.call_find(known[heapq.heappop(ahead)[1]], [where])
            if not found:
                continue
            answer, nearer = found[where]
            value = _unwrap(answer.value) if answer is not None else None
            if value is not None and is_right(value):
                return value
            for uid, peer in nearer.items():
                if uid not in seen:
                    seen.add(uid)
                    known[uid] = peer
                    heapq.heappush(ahead, (where.xor_distance(uid), uid))
        return None

    async def _nearest(self, where: DHTID, count: int) -> Sequence[PeerID | None]:
        """The nodes nearest to a key, nearest first; None stands for ourselves."""
        table = self._protocol.routing_table
        if len(table.uid_to_peer_id) < BUCKET_SIZE:  # so few that everybody knows everybody
            found = dict(table.get_nearest_neighbors(where, count, exclude=self._node.node_id))
        else:
            # Asking for the neighbouring id finds the same nodes without their sending what they hold under the key.
            beside = DHTID(where ^ 1)
            nearest = await self._node.find_nearest_nodes(
                [beside], k_nearest=count, beam_size=count + 2, exclude_self=True
            )
            found = nearest[beside]
        candidates: list[tuple[int, PeerID | None]] = [(where.xor_distance(uid), peer) for uid, peer in found.items()]
        if self._server is not None:
            candidates.append((where.xor_distance(self._node.node_id), None))
        return [peer for _, peer in heapq.nsmallest(count, candidates, key=lambda pair: pair[0])]

    async def _store_at(self, peer: PeerID | None, item: Item) -> bool | None:
        if peer is None:
            assert self._server is not None
            return self._server.store(item, address=OWN)
        answer = await self._protocol.call_store(peer, [item.key], [item.value], [item.expires_at_s], [item.subkey])
        return bool(answer[0]) if answer else None

    async def _read_at(self, peer: PeerID | None, where: DHTID) -> ValueWithExpiration[object] | None:
        if peer is None:
            assert self._server is not None
            return self._server.shown(where)
        found = await self._protocol.call_find(peer, [where])
        return found[where][0] if found else None


def _entries(answer: ValueWithExpiration[object]) -> Mapping[str, Entry]:
    if not isinstance(answer.value, DictionaryDHTValue):
        return {}
    brought_by = answer.value.data.get(OWNERS)
    addresses = read_owners(brought_by.value) if brought_by is not None else {}
    # `.data` rather than `.items()`: the sender also chooses what items() compares, and it may not be comparable
    return {
        subkey: Entry(value=value, expires_at_s=stored.expiration_time, address=addresses.get(subkey))
        for subkey, stored in answer.value.data.items()
        if isinstance(subkey, str)
        and subkey != OWNERS
        and isinstance(stored.expiration_time, float)
        and (value := _unwrap(stored.value)) is not None
    }


def _unwrap(packed: object) -> bytes | None:
    """The bytes in a msgpack bin; None for anything else."""
    if not isinstance(packed, bytes):
        return None
    try:
        return msgspec.msgpack.decode(packed, type=bytes)
    except msgspec.DecodeError:
        return None
