"""What other nodes may ask of this one: the DHT's three remote calls, with limits in front of them.

A stored record must fit the wire format (`RecordRules`), may not outlive `MAX_TTL_S`, and counts for the address that
brought it (`records`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import dht_pb2

from codezero.network.dht.addresses import UNKNOWN, AddressBook
from codezero.network.dht.dictionary import UNREADABLE, pack_dictionary, read_dictionary, read_subkey
from codezero.network.dht.records import MAX_ENTRIES, OfferedRecord, RecordStore, StoredRecord, Version

MAX_TTL_S = 3660.0
"""Longest life of a record: an hour, and a minute for clocks that differ."""
OWN = "own"
"""Stands for this node's own address, which it does not know; others see it on the connection."""
OWNERS = "@"
"""Entry of a directory that its keeper adds: the address that brought each entry, by subkey."""
MAX_OWNERS_BYTES = 16 << 10
MAX_VALUE_BYTES = (256 << 10) + 16
"""A record and its msgpack header."""
MAX_RESPONSE_BYTES = 7 << 19
"""3.5 MiB of the 4 that a p2p message may have."""
MAX_ITEMS = 128
"""Records in one store request, keys in one find request: a node joining is handed many at once."""
RATE_PER_S, BURST = 100.0, 1000.0
"""Records and keys of one peer."""
PEERS_PER_ADDRESS = 16
"""So many times as much all peers of one address may ask."""
MAX_RATED = 4096
"""Peers and addresses whose rate is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """What a wire format lets a server keep and show."""

    accept: Callable[[OfferedRecord], Version | None]
    """The version of a record; None if it may not be stored."""
    attest: bool
    """Whether directories go out with `OWNERS`; readers of another format would take it for an entry."""
    own_places: bool
    """Whether every node stands where its peer id puts it; hivemind's own nodes draw their places."""


class RecordServer:
    """Stands in for DHTProtocol's handlers. Refusing to store is an answer (False), so an honest node learns of it.

    Records are kept here and not in the protocol, which hands all it has to every new neighbour in one message; beyond
    4 MB that message fails, and the neighbour with it. Every round writes anew, so nothing needs handing on.
    """

    def __init__(self, protocol: DHTProtocol, addresses: AddressBook, rules: RecordRules) -> None:
        self._protocol, self._addresses, self._rules = protocol, addresses, rules
        self._records = RecordStore()
        self._rates = _Rates()

    async def rpc_ping(self, request: dht_pb2.PingRequest, context: P2PContext) -> dht_pb2.PingResponse:
        self._admit(request.peer, context.remote_id, 0)
        return await self._protocol.rpc_ping(request, context)

    async def rpc_find(self, request: dht_pb2.FindRequest, context: P2PContext) -> dht_pb2.FindResponse:
        self._admit(request.peer, context.remote_id, len(request.keys))
        response = await self._protocol.rpc_find(request, context)
        room = MAX_RESPONSE_BYTES - response.ByteSize()
        for result, key in zip(response.results, request.keys, strict=True):
            records = self._records.under(DHTID.from_bytes(key))
            size = sum(record.size for record in records.values())
            if not records or size > room:
                continue
            room -= size
            result.expiration_time = max(record.expires_at_s for record in records.values())
            if None in records:
                result.type, result.value = dht_pb2.FOUND_REGULAR, records[None].value
            else:
                result.type, result.value = dht_pb2.FOUND_DICTIONARY, self._pack(records)
        return response

    async def rpc_store(self, request: dht_pb2.StoreRequest, context: P2PContext) -> dht_pb2.StoreResponse:
        columns = (request.keys, request.subkeys, request.values, request.expiration_time)
        if len({len(column) for column in columns}) != 1:
            raise ValueError("keys, subkeys, values and expiration times are not aligned")
        self._admit(request.peer, context.remote_id, len(request.keys))
        address = await self._addresses.address_of(context.remote_id, calling=True)
        # The protocol notes the sender as a neighbour and answers with our own node id; it is given nothing to store.
        response = await self._protocol.rpc_store(dht_pb2.StoreRequest(peer=request.peer), context)
        sender = context.remote_id.to_base58()
        for key, tag, value, expires_at_s in zip(*columns, strict=True):
            items = _read_items(DHTID.from_bytes(key), tag, value, expires_at_s, sender)
            stored = [self.store(item, address) for item in items]
            response.store_ok.append(bool(stored) and all(stored))
        return response

    def held(self, key: DHTID) -> bytes | None:
        """The plain value under a key."""
        record = self._records.under(key).get(None)
        return record.value if record is not None else None

    def directory(self, key: DHTID) -> Mapping[str, StoredRecord]:
        """The directory under a key."""
        return {subkey: record for subkey, record in self._records.under(key).items() if subkey is not None}

    def store(self, item: OfferedRecord, address: str) -> bool:
        """Stores one record for an address if it may; False if not, or if another one is there that is no older."""
        now = time.time()
        if not (now < item.expires_at_s <= now + MAX_TTL_S) or len(item.value) > MAX_VALUE_BYTES:
            return False
        held = self._records.under(item.key).get(item.subkey)
        if held is not None and held.value == item.value and held.expires_at_s >= item.expires_at_s:
            return True
        version = self._rules.accept(item)
        if version is None or (held is not None and held.version >= version):
            return False
        return self._records.add(item, version, address)

    def _admit(self, node: dht_pb2.NodeInfo, peer_id: PeerID, num_items: int) -> None:
        """Raises ValueError: the peer, or all at its address, ask too much; or it asks nonsense."""
        if len(node.node_id) > DHTID.HASH_NBYTES:
            raise ValueError(f"a node id of {len(node.node_id)} bytes")
        if num_items > MAX_ITEMS:
            raise ValueError(f"{num_items} in one request, at most {MAX_ITEMS}")
        self._rates.take(peer_id.to_base58(), 1 + num_items)
        address = self._addresses.seen(peer_id)
        if address != UNKNOWN:
            self._rates.take(address, (1 + num_items) / PEERS_PER_ADDRESS)

    def _pack(self, records: Mapping[str | None, StoredRecord]) -> bytes:
        """A directory; with it goes who brought which entry, which its readers cannot see."""
        entries = [(subkey or "", record.value, record.expires_at_s) for subkey, record in records.items()]
        if self._rules.attest:
            owners = {subkey or "": record.address for subkey, record in records.items() if record.address != OWN}
            entries.append((OWNERS, msgspec.msgpack.encode(owners), max(entry[2] for entry in entries)))
        return pack_dictionary(entries)


def read_owners(value: bytes) -> Mapping[str, str]:
    """What a server added to a directory under `OWNERS`; nothing if a peer made it up badly."""
    try:
        return msgspec.msgpack.decode(value, type=dict[str, str]) if len(value) <= MAX_OWNERS_BYTES else {}
    except UNREADABLE:
        return {}


def _read_items(key: DHTID, tag: bytes, value: bytes, expires_at_s: float, sender: str) -> list[OfferedRecord]:
    """A record, or all entries of a directory that a node hands on; nothing if it is not made as it should be."""
    if tag == DHTProtocol.IS_REGULAR_VALUE:
        return [OfferedRecord(key=key, subkey=None, value=value, expires_at_s=expires_at_s, sender=sender)]
    if tag == DHTProtocol.IS_DICTIONARY:
        entries = read_dictionary(value)[:MAX_ENTRIES]
    else:
        subkey = read_subkey(tag)
        entries = [] if subkey is None else [(subkey, value, expires_at_s)]
    return [
        OfferedRecord(key=key, subkey=subkey, value=value, expires_at_s=expires_at_s, sender=sender)
        for subkey, value, expires_at_s in entries
    ]


class _Rates:
    """A token bucket each, for the peers and addresses seen last."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, count: float) -> None:
        """Raises ValueError: it asks too often."""
        now = time.monotonic()
        tokens, then = self._buckets.pop(who, (BURST, now))
        tokens = min(BURST, tokens + (now - then) * RATE_PER_S)
        self._buckets[who] = (max(tokens - count, 0.0), now)
        if len(self._buckets) > MAX_RATED:
            self._buckets.popitem(last=False)
        if tokens < count:
            raise ValueError("too many requests")
