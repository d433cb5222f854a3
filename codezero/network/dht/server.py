"""The DHT's three remote calls, which other nodes make to this one, with limits on them.

A stored record must be of the wire format (`RecordRules`), live no longer than `MAX_TTL_S`, and counts for the address
that sent it (`records`).
"""

from __future__ import annotations

import asyncio
import contextlib
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
from codezero.network.dht.daemon import is_drained
from codezero.network.dht.dictionary import pack_dictionary, read_dictionary, read_subkey
from codezero.network.dht.records import MAX_ENTRIES, OfferedRecord, RecordStore, StoredRecord, Version
from codezero.network.wire.codec import UNREADABLE

MAX_TTL_S = 3660.0
"""Longest life of a record in seconds: an hour, and a minute for clocks that differ."""
OWN = "own"
"""Stands for this node's own address, which only other nodes see."""
OWNERS = "@"
"""The subkey of an entry that a server adds to a directory: the address that sent each entry, by subkey."""
MAX_OWNERS_BYTES = 16 << 10
"""The most bytes of that entry."""
MAX_VALUE_BYTES = (256 << 10) + 16
"""The most bytes of a record with its msgpack header."""
MAX_RESPONSE_BYTES = 7 << 19
"""The most bytes of an answer, 3.5 MiB: a p2p message may have 4."""
MAX_ITEMS = 128
"""The most records in a store request and keys in a find request: a node that joins gets many at once."""
RATE_PER_S, BURST = 100.0, 1000.0
"""Records and keys that a peer may send, per second and at once."""
TOKEN_BYTES = 16 << 10
"""The bytes of records that a peer is sent for a token of a second bucket: 1.6 MB a second, 16 MB at once. In a round
a node of a native swarm reads 2 MiB of bodies (8 of 256 KiB), and 100 KB of announcements every two seconds; one of a
GenRL swarm of 16 reads two directories of 768 KiB eight times in the first five seconds, then every two seconds."""
MAX_WAITING_BYTES = 32 << 20
"""The most bytes of records that wait until the daemon takes them, which may be slower than this node."""
MAX_ADDRESS_S = 1.0
"""Longest wait in seconds for a new peer's address, so that a busy daemon keeps no new node from being answered."""
PEERS_PER_ADDRESS = 16
"""The factor on these limits for all peers of one address together."""
MAX_RATED = 4096
"""The most peers and addresses whose rate is known, the last seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """The rules of a wire format for servers."""

    accept: Callable[[OfferedRecord], Version | None]
    """Returns the version of a record; None if it may not be stored."""
    is_native: bool
    """True if directories are sent with `OWNERS`, which readers of the other format would take for an entry, and if all
    node ids follow from peer ids; hivemind's own nodes draw theirs at random."""


class RecordServer:
    """Replaces DHTProtocol's handlers. A refusal to store is an answer (False), so that an honest node learns of it.

    Records are kept here and not in the protocol, which sends all that it has to each new neighbour in one message;
    beyond 4 MB that fails, and the neighbour is lost. Each round is written anew, so records need not be passed on.
    """

    def __init__(self, protocol: DHTProtocol, addresses: AddressBook, rules: RecordRules) -> None:
        self._protocol, self._addresses, self._rules = protocol, addresses, rules
        self._records = RecordStore()
        self._rates, self._sent_rates = _Rates(), _Rates()
        self._waiting_bytes = 0
        """The bytes of records sent since the daemon last had all messages."""

    async def rpc_ping(self, request: dht_pb2.PingRequest, context: P2PContext) -> dht_pb2.PingResponse:
        await self._admit(request.peer, context.remote_id, 0)
        return await self._protocol.rpc_ping(request, context)

    async def rpc_find(self, request: dht_pb2.FindRequest, context: P2PContext) -> dht_pb2.FindResponse:
        await self._admit(request.peer, context.remote_id, len(request.keys))
        response = await self._protocol.rpc_find(request, context)
        room = MAX_RESPONSE_BYTES - response.ByteSize()
        for result, key in zip(response.results, request.keys, strict=True):
            records = self._records.under(DHTID.from_bytes(key))
            size = sum(record.size for record in records.values())
            if not records or size > room or not self._may_send(context.remote_id, size):
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
        await self._admit(request.peer, context.remote_id, len(request.keys))
        address = self._addresses.seen(context.remote_id)  # `_admit` has waited for it as long as a writer can
        # The protocol adds the sender to the routing table and answers with this node's id; it gets nothing to store.
        response = await self._protocol.rpc_store(dht_pb2.StoreRequest(peer=request.peer), context)
        sender = context.remote_id.to_base58()
        offered = [
            _read_items(DHTID.from_bytes(key), tag, value, expires_at_s, sender)
            for key, tag, value, expires_at_s in zip(*columns, strict=True)
        ]
        self._charge(context.remote_id, sum(len(items) - 1 for items in offered if items))  # entries of directories
        for items in offered:
            stored = [self.store(item, address) for item in items]
            response.store_ok.append(bool(stored) and all(stored))
        return response

    def held(self, key: DHTID) -> bytes | None:
        """Returns the plain value under a key; None if there is none."""
        record = self._records.under(key).get(None)
        return record.value if record is not None else None

    def directory(self, key: DHTID) -> Mapping[str, StoredRecord]:
        """Returns the directory under a key, by subkey."""
        return {subkey: record for subkey, record in self._records.under(key).items() if subkey is not None}

    def store(self, item: OfferedRecord, address: str) -> bool:
        """Stores a record for an address. Returns False if it is refused, or not newer than the stored one."""
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

    async def _admit(self, node: dht_pb2.NodeInfo, peer_id: PeerID, num_items: int) -> None:
        """Raises ValueError: the peer, or all peers at its address, send too much, or the request is malformed."""
        if len(node.node_id) > DHTID.HASH_NBYTES:
            raise ValueError(f"a node id of {len(node.node_id)} bytes")
        if num_items > MAX_ITEMS:
            raise ValueError(f"{num_items} in one request, at most {MAX_ITEMS}")
        with contextlib.suppress(asyncio.TimeoutError):
            # An address that is not known yet would be free, for each new identity.
            await asyncio.wait_for(self._addresses.address_of(peer_id, calling=True), MAX_ADDRESS_S)
        self._charge(peer_id, 1 + num_items)

    def _charge(self, peer_id: PeerID, count: int) -> None:
        """Counts records and keys for a peer and its address. Raises ValueError: they send too much."""
        address = self._addresses.seen(peer_id)
        if address != UNKNOWN:  # first, so that what is refused to a peer counts there too
            self._rates.take(address, count / PEERS_PER_ADDRESS)
        self._rates.take(peer_id.to_base58(), count)

    def _may_send(self, peer_id: PeerID, size: int) -> bool:
        """Counts the bytes of records for a peer and its address. Returns False if they were sent too many lately, or
        too many wait: these are left out, and nothing is raised, so that an honest reader keeps a neighbour."""
        if is_drained(self._protocol.p2p):
            self._waiting_bytes = 0
        address = self._addresses.seen(peer_id)
        costs = {peer_id.to_base58(): size / TOKEN_BYTES}
        if address != UNKNOWN:
            costs[address] = size / TOKEN_BYTES / PEERS_PER_ADDRESS
        is_free = self._waiting_bytes + size <= MAX_WAITING_BYTES
        if not is_free or any(self._sent_rates.left(who) < cost for who, cost in costs.items()):
            return False
        self._waiting_bytes += size
        for who, cost in costs.items():
            self._sent_rates.take(who, cost)
        return True

    def _pack(self, records: Mapping[str | None, StoredRecord]) -> bytes:
        """Encodes a directory, with the address that sent each entry, which its readers cannot see themselves."""
        entries = [(subkey or "", record.value, record.expires_at_s) for subkey, record in records.items()]
        if self._rules.is_native:
            owners = {subkey or "": record.address for subkey, record in records.items() if record.address != OWN}
            entries.append((OWNERS, msgspec.msgpack.encode(owners), max(entry[2] for entry in entries)))
        return pack_dictionary(entries)


def read_owners(value: bytes) -> Mapping[str, str]:
    """Decodes the entry `OWNERS` of a directory; empty if it is malformed."""
    try:
        return msgspec.msgpack.decode(value, type=dict[str, str]) if len(value) <= MAX_OWNERS_BYTES else {}
    except UNREADABLE:
        return {}


def _read_items(key: DHTID, tag: bytes, value: bytes, expires_at_s: float, sender: str) -> list[OfferedRecord]:
    """Returns the record in a request, or all entries of a directory that a node passes on; none if it is malformed."""
    if tag == DHTProtocol.IS_REGULAR_VALUE:
        return [OfferedRecord(key=key, subkey=None, value=value, expires_at_s=expires_at_s, sender=sender)]
    if tag == DHTProtocol.IS_DICTIONARY:
        entries = read_dictionary(value, MAX_ENTRIES)
    else:
        subkey = read_subkey(tag)
        entries = [] if subkey is None else [(subkey, value, expires_at_s)]
    return [
        OfferedRecord(key=key, subkey=subkey, value=value, expires_at_s=expires_at_s, sender=sender)
        for subkey, value, expires_at_s in entries
    ]


class _Rates:
    """Token buckets of the peers and addresses seen last."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, who: str) -> float:
        """Returns the number of tokens in a bucket."""
        now = time.monotonic()
        tokens, then = self._buckets.get(who, (BURST, now))
        return min(BURST, tokens + (now - then) * RATE_PER_S)

    def take(self, who: str, count: float) -> None:
        """Takes tokens. Raises ValueError: there are not enough."""
        tokens = self.left(who)
        self._buckets[who] = (max(tokens - count, 0.0), time.monotonic())
        self._buckets.move_to_end(who)
        if len(self._buckets) > MAX_RATED:
            self._buckets.popitem(last=False)
        if tokens < count:
            raise ValueError("too many requests")
