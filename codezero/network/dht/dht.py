"""Writes and reads records in a Kademlia DHT: hivemind's protocol with an own server (`server`) and own searches.

hivemind's `get` decodes untrusted values inside its search, where one that cannot be decoded makes the caller wait for
ever; it merges the answers of replicas, so that a lying one can hide the others; and its search continues as long as a
node names ever nearer nodes. Here the replicas' answers stay apart, as bytes, and all requests and searches have time
limits.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from hivemind.dht.protocol import DHTProtocol, ValidationError
from hivemind.dht.routing import DHTID
from hivemind.p2p import P2P, PeerID
from hivemind.proto import dht_pb2

from codezero.network.dht.addresses import AddressBook
from codezero.network.dht.density import Density
from codezero.network.dht.dictionary import DirectoryEntry, Packed, read_dictionary
from codezero.network.dht.neighbours import LookupReply, Neighbours, find, node_id_of
from codezero.network.dht.records import MAX_ENTRIES, OfferedRecord
from codezero.network.dht.server import MAX_VALUE_BYTES, OWN, OWNERS, RecordRules, RecordServer, read_owners

REPLICAS = 3
"""The number of nodes that are asked to keep a record, the nearest to its key."""
READ_REPLICAS = 4
"""The number of nodes that are asked for a directory: one more, in case a nearer node has just joined."""
MAX_FETCH_STEPS = 12
"""The number of nodes that are asked for a plain record; each about halves the distance to its key."""
MAX_SEARCH_S = 8.0
"""Seconds after which a search ends with what it has; four steps are enough for a million nodes."""
MAX_LOOKS = 4
"""The most times that a search looks where the nodes that it has found are, before it ends with what it has."""
BUCKET_SIZE = 20
"""Kademlia's k."""
RPC_TIMEOUT_S = 3.0
"""Longest wait in seconds for the answer of a node."""
SILENT_S, MAX_SILENT = 10.0, 1024
"""Seconds for which a node that gave no answer is not asked again although others name it, and the most such nodes."""


Key = str | bytes
"""A key. hivemind hashes bytes as they are, but a text with its msgpack header, so the same name gives two keys."""


def key_id(key: Key) -> DHTID:
    """Returns the position of a key in the key space."""
    return DHTID.generate(source=key)


class Dht:
    """A node of the DHT. All methods run on the event loop that made it."""

    def __init__(self, protocol: DHTProtocol, addresses: AddressBook, server: RecordServer | None) -> None:
        self._protocol, self._server = protocol, server
        self._id: DHTID = protocol.node_id
        self.p2p: P2P = protocol.p2p
        self.addresses = addresses
        self._silent: OrderedDict[PeerID, float] = OrderedDict()
        """The time at which a node gave no answer."""
        self._density = Density()

    @classmethod
    async def create(cls, p2p: P2P, rules: RecordRules, serve: bool) -> Dht:
        """Makes a node that knows no others yet. With `serve` it keeps the records that the rules accept."""
        own_id = node_id_of(p2p.peer_id)
        # First a client: a server of hivemind's would accept anything until RecordServer replaces it.
        protocol = await DHTProtocol.create(
            p2p, own_id, BUCKET_SIZE, 5, REPLICAS, wait_timeout=RPC_TIMEOUT_S, client_mode=True
        )

        def takes(node_id: DHTID, peer_id: PeerID) -> bool:
            return not rules.is_native or node_id == node_id_of(peer_id)

        protocol.routing_table = Neighbours(own_id, BUCKET_SIZE, takes)
        addresses = AddressBook(p2p)
        if not serve:
            return cls(protocol, addresses, None)
        server = RecordServer(protocol, addresses, rules)
        protocol.client_mode, protocol.node_info = False, dht_pb2.NodeInfo(node_id=own_id.to_bytes())
        await protocol.add_p2p_handlers(p2p, wrapper=server)
        return cls(protocol, addresses, server)

    async def objection(self, peer_id: PeerID) -> str:
        """Returns a connected node's objection: a clock more than 3 s off, or no way back to this node; else empty."""
        try:
            await self._protocol.call_ping(peer_id, validate=True)
        except ValidationError as error:
            return str(error)
        except (AssertionError, ValueError):  # hivemind's, for a node id of another length
            return "it names a malformed node id"
        return ""

    async def meet(self, peer_id: PeerID) -> bool:
        """Adds a connected node and, through it, those near this one as neighbours; False if it gives no usable
        answer."""
        answer = await find(self._protocol, peer_id, self._id)
        if answer is None:
            return False
        await self._search(self._id, BUCKET_SIZE, answer.nearer)
        return True

    async def look_around(self) -> None:
        """Asks known nodes for those near this one, which finds new ones and removes dead ones."""
        await self._search(self._id, BUCKET_SIZE)

    def num_neighbours(self) -> int:
        """Returns the number of nodes in the routing table."""
        return len(self._protocol.routing_table.uid_to_peer_id)

    def neighbours(self) -> Sequence[str]:
        """Returns the peer ids of the nodes in the routing table."""
        # A copy, since the swarm's thread changes the table while another one asks.
        return [peer.to_base58() for peer in list(self._protocol.routing_table.uid_to_peer_id.values())]

    def estimate_size(self) -> int:
        """Estimates the number of servers; exact as long as all are in the routing table."""
        known = list(self._protocol.routing_table.uid_to_peer_id)
        others = len(known) if len(known) < BUCKET_SIZE else self._density.size(self._id, known)
        return others + (self._server is not None)

    async def store(self, key: Key, subkey: str | None, value: bytes, expires_at_s: float) -> tuple[bool, ...]:
        """Asks the nearest nodes to keep a record. Returns the replies, True from a node that keeps it; this node's own
        only if no other was asked: it is of no use if the daemon has just died."""
        item = self._item(key, subkey, value, expires_at_s)
        return await self._store_at(await self._nearest(item.key, REPLICAS), item)

    async def replace(
        self, key: Key, subkey: str, value: bytes, expires_at_s: float
    ) -> tuple[tuple[bool, ...], tuple[Mapping[str, DirectoryEntry], ...]]:
        """Stores an entry of a directory. Returns the result of `store`, and of a `read` before it."""
        item = self._item(key, subkey, value, expires_at_s)
        found = await self._search(item.key, REPLICAS)
        before = self._shown(item.key, found)
        nearest = self._with_us(item.key, {peer: uid for peer, (uid, _) in found.items()}, REPLICAS)
        return await self._store_at(nearest, item), before

    async def read(self, key: Key) -> tuple[Mapping[str, DirectoryEntry], ...]:
        """Returns a directory's entries by subkey, for each of the nearest nodes that answered, and for this node."""
        where = key_id(key)
        return self._shown(where, await self._search(where, READ_REPLICAS))

    async def fetch(self, key: str, is_right: Callable[[bytes], bool]) -> bytes | None:
        """Returns a plain record that passes the test, from the first node that has one; None if none near the key has.

        It asks one node at a time, each nearer to the key; a wrong answer costs one step. Every second one is of the
        routing table and of the address asked least, since one party may own all that are near or named.
        """
        where = key_id(key)
        value = _unwrap(self._server.held(where)) if self._server is not None else None
        if value is not None and is_right(value):
            return value
        known = self._known_near(where)
        ours, asked = set(known), set[PeerID]()
        num_asked = Counter[str]()
        for step in range(MAX_FETCH_STEPS):
            left = sorted(known.keys() - asked, key=lambda peer: where.xor_distance(known[peer]))
            if not left:
                break
            own = [peer for peer in left if peer in ours] if step % 2 else []
            peer = min(own, key=lambda peer: num_asked[self.addresses.seen(peer)]) if own else left[0]
            asked.add(peer)
            num_asked[self.addresses.seen(peer)] += 1
            answer = await self._find(peer, where)
            value = _unwrap(answer.value) if answer is not None and not answer.is_directory else None
            if value is not None and is_right(value):
                return value
            for uid, other in answer.nearer.items() if answer is not None else ():
                known.setdefault(other, uid)  # a node that gives itself many ids is asked once
        return None

    async def _nearest(self, where: DHTID, count: int) -> Sequence[PeerID | None]:
        """Returns the nodes nearest to a key, nearest first; None stands for this node."""
        if self.num_neighbours() < BUCKET_SIZE:  # so few that each knows all
            near = self._known_near(where)
            found = {peer: near[peer] for peer in self.addresses.spread(near, count)}
        else:
            # A search for the adjacent id finds the same nodes, but they do not send their records of the key.
            found = {peer: uid for peer, (uid, _) in (await self._search(DHTID(where ^ 1), count)).items()}
        return self._with_us(where, found, count)

    def _with_us(self, where: DHTID, found: Mapping[PeerID, DHTID], count: int) -> Sequence[PeerID | None]:
        candidates: list[tuple[int, PeerID | None]] = [(where.xor_distance(uid), peer) for peer, uid in found.items()]
        if self._server is not None:
            candidates.append((where.xor_distance(self._id), None))
        return [peer for _, peer in heapq.nsmallest(count, candidates, key=lambda pair: pair[0])]

    async def _search(
        self, where: DHTID, count: int, others: Mapping[DHTID, PeerID] | None = None
    ) -> dict[PeerID, tuple[DHTID, LookupReply]]:
        """Returns the `count` servers nearest to a position, nearest first, with ids and answers, as time allows.

        One server of each address comes before any second one: peer ids are free, so one party could else have all
        that are nearest. Nodes that share one address, as on one machine, are found like others.
        """
        deadline_s = time.monotonic() + MAX_SEARCH_S
        ours = self._known_near(where)
        known = {**ours, **{peer: uid for uid, peer in (others or {}).items()}}
        answered: dict[PeerID, LookupReply] = {}
        asked: set[PeerID] = set()
        located: set[PeerID] = set()
        before: list[PeerID] = []
        looks = 0

        def distance(peer: PeerID) -> int:
            return int(where.xor_distance(known[peer]))

        def nearest(peers: Iterable[PeerID]) -> list[PeerID]:
            ordered = sorted(peers, key=distance)  # at first the nearest of all, which fill up if addresses are few
            return sorted(self.addresses.spread(ordered, count, located), key=distance) if located else ordered[:count]

        while time.monotonic() < deadline_s:
            now = nearest(known)
            ahead = [peer for peer in now if peer not in asked]
            if not ahead:
                if located.issuperset(now):
                    break
                looks += 1
                located.update(answered)
                await asyncio.gather(*[self.addresses.address_of(peer, calling=True) for peer in answered])
                if looks == MAX_LOOKS:
                    break
                continue
            if located or len(answered) < len(asked):  # a liar may name ever more nodes that are silent, or its own
                left = sorted(ours.keys() - asked, key=distance)  # silent ones of one address cost one wait, not many
                ahead = list({*ahead, *self.addresses.spread(left, count, located)})
            elif now != before:  # as long as steps lead nearer, few of these will be among the last
                ahead = ahead[: (count + 1) // 2]
            before = now
            asked.update(ahead)
            answers = await asyncio.gather(*[self._find(peer, where) for peer in ahead])
            for peer, answer in zip(ahead, answers, strict=True):
                if answer is None:
                    del known[peer]
                    continue
                answered[peer] = answer
                for uid, other in answer.nearer.items():
                    if other not in asked:
                        known.setdefault(other, uid)
        located.update(answered)
        found = {peer: (known[peer], answered[peer]) for peer in nearest(answered)}
        if where != self._id:  # around this node the routing table knows more
            named = [(self.addresses.seen(peer), (uid, *answer.nearer)) for peer, (uid, answer) in found.items()]
            self._density.note(where, named)
        return found

    def _known_near(self, where: DHTID) -> dict[PeerID, DHTID]:
        """Returns the nearest nodes of the routing table, nearest first, and the nearest of different addresses."""
        table = self._protocol.routing_table.get_nearest_neighbors(where, self.num_neighbours())
        near = {peer: uid for uid, peer in table}
        peers = list(near)
        return {peer: near[peer] for peer in peers[:BUCKET_SIZE] + self.addresses.spread(peers, BUCKET_SIZE)}

    async def _find(self, peer: PeerID, where: DHTID) -> LookupReply | None:
        silent = time.monotonic() - self._silent.get(peer, -SILENT_S) < SILENT_S
        if silent and peer not in self._protocol.routing_table:  # it would be there if it had answered since
            return None
        answer = await find(self._protocol, peer, where)
        self._silent.pop(peer, None)
        if answer is None:
            self._silent[peer] = time.monotonic()
            if len(self._silent) > MAX_SILENT:
                self._silent.popitem(last=False)
        return answer

    def _item(self, key: Key, subkey: str | None, value: bytes, expires_at_s: float) -> OfferedRecord:
        sender, packed = self.p2p.peer_id.to_base58(), msgspec.msgpack.encode(value)
        return OfferedRecord(key=key_id(key), subkey=subkey, value=packed, expires_at_s=expires_at_s, sender=sender)

    async def _store_at(self, nearest: Sequence[PeerID | None], item: OfferedRecord) -> tuple[bool, ...]:
        async def ask(peer: PeerID | None) -> bool | None:
            if peer is None:
                assert self._server is not None
                return self._server.store(item, address=OWN)
            answer = await self._protocol.call_store(peer, [item.key], [item.value], [item.expires_at_s], [item.subkey])
            return bool(answer[0]) if answer else None

        said = zip(nearest, await asyncio.gather(*map(ask, nearest)), strict=True)
        return tuple(answer for peer, answer in said if answer is not None and (peer is not None or len(nearest) == 1))

    def _shown(
        self, where: DHTID, found: Mapping[PeerID, tuple[DHTID, LookupReply]]
    ) -> tuple[Mapping[str, DirectoryEntry], ...]:
        shown = [_read(peer, answer) for peer, (_, answer) in found.items()]
        if self._server is not None:
            held = self._server.directory(where)
            owners = {subkey: record.address for subkey, record in held.items() if record.address != OWN}
            packed = [(subkey, record.value, record.expires_at_s) for subkey, record in held.items()]
            shown.append(_entries(self.p2p.peer_id, packed, owners))
        return tuple(shown)


def _read(peer: PeerID, answer: LookupReply) -> Mapping[str, DirectoryEntry]:
    packed = read_dictionary(answer.value) if answer.is_directory and answer.value is not None else []
    owners = next((read_owners(value) for subkey, value, _ in packed if subkey == OWNERS), {})
    entries = [entry for entry in packed if entry[0] != OWNERS]
    # Own servers never send more. Of another's, a sample is taken, so that the order of entries gives no advantage.
    return _entries(peer, random.sample(entries, min(len(entries), MAX_ENTRIES)), owners)


def _entries(witness: PeerID, packed: Sequence[Packed], owners: Mapping[str, str]) -> Mapping[str, DirectoryEntry]:
    name = witness.to_base58()
    return {
        subkey: DirectoryEntry(value=content, expires_at_s=expires_at_s, witness=name, address=owners.get(subkey))
        for subkey, value, expires_at_s in packed
        if (content := _unwrap(value)) is not None
    }


def _unwrap(packed: bytes | None) -> bytes | None:
    """Returns the bytes in a msgpack bin; None for anything else."""
    if packed is None or len(packed) > MAX_VALUE_BYTES:
        return None
    try:
        return msgspec.msgpack.decode(packed, type=bytes)
    except msgspec.DecodeError:
        return None
