"""What other nodes may ask of this one: the DHT's three remote calls, with limits in front of them.

A stored record must fit the wire format (`RecordRules`), may not outlive `MAX_TTL_S`, and counts for the address that
brought it. Memory is shared by dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 1998): an address may hold as
much as is still free, so one flooder leaves half of it to others. A full directory makes room for an address with
fewer entries by dropping one of the address with most, so many identities of one address cannot crowd out others.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.storage import DHTLocalStorage, DictionaryDHTValue
from hivemind.p2p import P2PContext
from hivemind.proto import dht_pb2
from hivemind.utils.timed_storage import ValueWithExpiration

from codezero.network.addresses import UNKNOWN, AddressBook

logger = logging.getLogger(__name__)

MAX_TTL_S = 3660.0
"""Longest life of a record: an hour, and a minute for clocks that differ."""
MAX_DIRECTORIES = 4096
"""Directories of which it is known who brought what; in others all entries count for one unknown address."""
MAX_ENTRIES = 64
"""Entries of one directory key."""
OWN = "own"
"""Stands for this node's own address, which it does not know; others see it on the connection."""
OWNERS = "@"
"""Entry of a directory that its keeper adds: the address that brought each entry, by subkey."""
MAX_STORED_BYTES = 256 << 20
MAX_VALUE_BYTES = (256 << 10) + 16
"""A record and its msgpack header."""
MAX_ITEMS = 128
"""Records in one store request, keys in one find request: a node joining is handed many at once."""
RATE_PER_S, BURST = 100.0, 1000.0
"""Requests of one peer."""
MAX_RATED_PEERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One record that somebody wants stored."""

    key: DHTID
    subkey: str | None
    """None for a plain value, else the entry of a directory."""
    value: bytes
    """As it lies in the DHT, msgpack header included."""
    expires_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """What a wire format lets a server keep and show."""

    accept: Callable[[Item], bool]
    attest: bool
    """Whether directories go out with `OWNERS`; readers of another format would take it for an entry."""


class RecordServer:
    """Stands in for DHTProtocol's handlers. Refusing to store is an answer (False), so an honest node learns of it.

    Records are kept here and not in the protocol, which hands all it has to every new neighbour in one message; beyond
    4 MB that message fails, and the neighbour with it. Every round writes anew, so nothing needs handing on.
    """

    def __init__(self, protocol: DHTProtocol, addresses: AddressBook, rules: RecordRules) -> None:
        self._protocol, self._addresses, self._rules = protocol, addresses, rules
        self._storage = DHTLocalStorage()
        self._rates = _Rates()
        self._quota = _Quota()
        self._owners: OrderedDict[DHTID, dict[str, str]] = OrderedDict()
        """Who brought which entry of a directory: address by subkey, for the directories written last."""

    async def rpc_ping(self, request: dht_pb2.PingRequest, context: P2PContext) -> dht_pb2.PingResponse:
        self._rates.take(context.remote_id.to_base58())
        return await self._protocol.rpc_ping(request, context)

    async def rpc_find(self, request: dht_pb2.FindRequest, context: P2PContext) -> dht_pb2.FindResponse:
        self._rates.take(context.remote_id.to_base58())
        if len(request.keys) > MAX_ITEMS:
            raise ValueError(f"{len(request.keys)} keys in one request, at most {MAX_ITEMS}")
        response = await self._protocol.rpc_find(request, context)
        for result, key in zip(response.results, request.keys, strict=True):
            found = self.shown(DHTID.from_bytes(key))
            if found is None:
                continue
            result.expiration_time = found.expiration_time
            if isinstance(found.value, DictionaryDHTValue):
                result.type, result.value = dht_pb2.FOUND_DICTIONARY, DHTProtocol.serializer.dumps(found.value)
            else:
                result.type, result.value = dht_pb2.FOUND_REGULAR, found.value
        return response

    async def rpc_store(self, request: dht_pb2.StoreRequest, context: P2PContext) -> dht_pb2.StoreResponse:
        self._rates.take(context.remote_id.to_base58())
        columns = (request.keys, request.subkeys, request.values, request.expiration_time)
        if len({len(column) for column in columns}) != 1 or len(request.keys) > MAX_ITEMS:
            raise ValueError(f"not aligned, or more than {MAX_ITEMS} records")
        # The protocol notes the sender as a neighbour and answers with our own node id; it is given nothing to store.
        response = await self._protocol.rpc_store(dht_pb2.StoreRequest(peer=request.peer), context)
        address = await self._addresses.address_of(context.remote_id)
        for key, tag, value, expires_at_s in zip(*columns, strict=True):
            items = _read_items(DHTID.from_bytes(key), tag, value, expires_at_s)
            stored = [self.store(item, address) for item in items]
            response.store_ok.append(bool(stored) and all(stored))
        return response

    def held(self, key: DHTID) -> ValueWithExpiration[bytes | DictionaryDHTValue] | None:
        """What lies under a key."""
        return self._storage.get(key)

    def shown(self, key: DHTID) -> ValueWithExpiration[bytes | DictionaryDHTValue] | None:
        """What lies under a key; with a directory goes who brought which entry, which its readers cannot see."""
        found = self._storage.get(key)
        owners = self._owners.get(key)
        if found is None or owners is None or not self._rules.attest:
            return found
        shown = DictionaryDHTValue()
        for subkey, entry in found.value.items():
            shown.store(subkey, entry.value, entry.expiration_time)
        known = {subkey: owner for subkey, owner in owners.items() if owner != OWN}
        shown.store(OWNERS, msgspec.msgpack.encode(known), found.expiration_time)
        return ValueWithExpiration(shown, found.expiration_time)

    def store(self, item: Item, address: str) -> bool:
        """Stores one record for an address if it may; False if not, or if a newer one is there."""
        now = time.time()
        if not (now < item.expires_at_s <= now + MAX_TTL_S) or len(item.value) > MAX_VALUE_BYTES:
            return False
        held = self._held_item(item)
        if held is not None and held.expiration_time >= item.expires_at_s:
            return bool(held.value == item.value)  # storing it again would make hivemind forget it early
        if not self._rules.accept(item) or not self._quota.has_room(address, len(item.value), now):
            return False
        if item.subkey is not None and not self._make_room(item, address):
            return False
        if not self._storage.store(item.key, item.value, item.expires_at_s, subkey=item.subkey):
            return False
        self._quota.add(address, len(item.value), item.expires_at_s)
        if item.subkey is not None:
            self._owners.setdefault(item.key, {})[item.subkey] = address
            self._owners.move_to_end(item.key)
            if len(self._owners) > MAX_DIRECTORIES:
                self._owners.popitem(last=False)
        return True

    def _held_item(self, item: Item) -> ValueWithExpiration[bytes] | None:
        found = self._storage.get(item.key)
        if item.subkey is None or found is None:
            return found
        directory = found.value
        return directory.get(item.subkey) if isinstance(directory, DictionaryDHTValue) else None

    def _make_room(self, item: Item, address: str) -> bool:
        """Whether the directory has room for the entry, dropping one of the address with most if it must."""
        found = self._storage.get(item.key)
        directory = found.value if found is not None else None
        if not isinstance(directory, DictionaryDHTValue):
            return True
        if item.subkey in directory or len(directory) < MAX_ENTRIES:
            return True
        known = self._owners.get(item.key, {})
        owners = {subkey: known.get(subkey, UNKNOWN) for subkey in directory.data}
        self._owners[item.key] = owners
        counts = Counter(owners.values())
        largest, most = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
        if counts[address] + 1 >= most:
            return False
        victim = next(subkey for subkey in reversed(owners) if owners[subkey] == largest)
        del directory[victim]
        del owners[victim]
        return True


def read_owners(value: object) -> Mapping[str, str]:
    """What `shown` added to a directory; nothing if a peer made it up badly."""
    if not isinstance(value, bytes) or len(value) > MAX_VALUE_BYTES:
        return {}
    try:
        return msgspec.msgpack.decode(value, type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def _read_items(key: DHTID, tag: bytes, value: bytes, expires_at_s: float) -> list[Item]:
    """A record, or all entries of a directory that a node hands on; nothing if it is not made as it should be."""
    if tag == DHTProtocol.IS_REGULAR_VALUE:
        return [Item(key=key, subkey=None, value=value, expires_at_s=expires_at_s)]
    loads = DHTProtocol.serializer.loads
    if tag != DHTProtocol.IS_DICTIONARY:
        subkey = loads(tag)
        if not isinstance(subkey, str):
            return []
        return [Item(key=key, subkey=subkey, value=value, expires_at_s=expires_at_s)]
    directory = loads(value)
    entries = directory.data.items() if isinstance(directory, DictionaryDHTValue) else ()
    return [
        Item(key=key, subkey=subkey, value=entry.value, expires_at_s=entry.expiration_time)
        for subkey, entry in list(entries)[:MAX_ENTRIES]
        if isinstance(subkey, str) and isinstance(entry.value, bytes) and isinstance(entry.expiration_time, float)
    ]


class _Rates:
    """A token bucket a peer, for the peers seen last."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, peer_id: str) -> None:
        """Raises ValueError: the peer asks too often."""
        now = time.monotonic()
        tokens, then = self._buckets.pop(peer_id, (BURST, now))
        tokens = min(BURST, tokens + (now - then) * RATE_PER_S)
        self._buckets[peer_id] = (max(tokens - 1, 0.0), now)
        if len(self._buckets) > MAX_RATED_PEERS:
            self._buckets.popitem(last=False)
        if tokens < 1:
            raise ValueError("too many requests")


class _Quota:
    """Bytes stored by address, until they expire."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._expiring: list[tuple[float, str, int]] = []

    def has_room(self, address: str, size: int, now: float) -> bool:
        while self._expiring and self._expiring[0][0] < now:
            _, owner, freed = heapq.heappop(self._expiring)
            self._held[owner] -= freed
            if not self._held[owner]:
                del self._held[owner]
        return self._held[address] + size <= MAX_STORED_BYTES - self._held.total()

    def add(self, address: str, size: int, expires_at_s: float) -> None:
        self._held[address] += size
        heapq.heappush(self._expiring, (expires_at_s, address, size))
