"""The records that a server keeps for other nodes, with fair shares of memory for network addresses.

Memory is shared by dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 1998): an address may have as much as is still
free, so one flooder leaves half of it to others. If a directory is full, a new entry of an address that has less in it
replaces the newest entry of the address that has most, so many identities of one address cannot displace others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hivemind.dht.routing import DHTID

MAX_STORED_BYTES = 256 << 20
"""The memory for all records."""
OVERHEAD_BYTES = 1024
"""Python's overhead of a record, rounded up, which counts too, so that many small records do not exceed the limit."""
MAX_ENTRIES = 64
"""The most entries of one directory."""
MAX_DIRECTORY_BYTES = 3 << 20
"""The most bytes of one directory: it is sent as one message, and p2p messages have at most 4 MiB."""
SWEEP_S = 30.0
"""Seconds between two removals of all expired records."""
MAX_SET_BACK_S = 60.0
"""The most seconds by which the clock may be set back without a loss of records: as many as clocks may differ."""

Version = tuple[float, float]
"""A pair by which records of the same key and subkey are compared; the higher one stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRecord:
    """A record that a node asks to be stored."""

    key: DHTID
    subkey: str | None
    """The name of an entry of a directory; None for a plain value."""
    value: bytes
    """The value in the DHT, msgpack header included."""
    expires_at_s: float
    sender: str
    """The peer id of the node that sends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record that is stored."""

    value: bytes
    expires_at_s: float
    version: Version
    address: str
    """The address that its memory counts for."""
    size: int
    stored_at_s: float
    """The Unix time by this machine's clock."""

    @property
    def share(self) -> int:
        """The bytes that it counts in its directory, at least as many as an entry of a full directory may have."""
        return max(self.size, MAX_DIRECTORY_BYTES // MAX_ENTRIES)


class RecordStore:
    """The records, by key and subkey; a plain value has the subkey None."""

    def __init__(self, capacity_bytes: int = MAX_STORED_BYTES) -> None:
        self._capacity = capacity_bytes
        self._records: dict[DHTID, dict[str | None, StoredRecord]] = {}
        self._held: Counter[str] = Counter()
        """The bytes stored, by address."""
        self._swept_s = time.monotonic()

    def under(self, key: DHTID) -> Mapping[str | None, StoredRecord]:
        """Returns the records of a key that have not expired, by subkey, in the order of storing. Those that were
        stored before the clock was set back are gone too: what their peers publish from now on would count as older."""
        now = time.time()
        for subkey, record in list(self._records.get(key, {}).items()):
            if record.expires_at_s <= now or record.stored_at_s > now + MAX_SET_BACK_S:
                self._drop(key, subkey)
        return self._records.get(key, {})

    def add(self, item: OfferedRecord, version: Version, address: str) -> bool:
        """Stores a record for an address, in place of an older version. Returns False if there is no space for it."""
        self._sweep()
        record = StoredRecord(
            value=item.value,
            expires_at_s=item.expires_at_s,
            version=version,
            address=address,
            size=len(item.value) + len(item.subkey or "") + OVERHEAD_BYTES,
            stored_at_s=time.time(),
        )
        others = dict(self.under(item.key))
        old = others.pop(item.subkey, None)
        victims = _victims(others, record) if item.subkey is not None else []
        if victims is None or not self._has_room(record, old):
            return False
        for subkey in [*victims, *([item.subkey] if old is not None else [])]:
            self._drop(item.key, subkey)
        self._records.setdefault(item.key, {})[item.subkey] = record
        self._held[address] += record.size
        return True

    def _has_room(self, record: StoredRecord, old: StoredRecord | None) -> bool:
        held, total = self._held[record.address], self._held.total()
        if old is not None:
            total -= old.size
            held -= old.size if old.address == record.address else 0
        return held + record.size <= self._capacity - total

    def _drop(self, key: DHTID, subkey: str | None) -> None:
        record = self._records[key].pop(subkey)
        if not self._records[key]:
            del self._records[key]
        self._held[record.address] -= record.size
        if not self._held[record.address]:
            del self._held[record.address]

    def _sweep(self) -> None:
        if time.monotonic() - self._swept_s >= SWEEP_S:
            self._swept_s = time.monotonic()
            for key in list(self._records):
                self.under(key)


def _victims(entries: Mapping[str | None, StoredRecord], new: StoredRecord) -> list[str | None] | None:
    """Returns the entries of a directory that a new one replaces; None if the new one may not replace any."""
    left = dict(entries)
    shares: Counter[str] = Counter()
    for record in left.values():
        shares[record.address] += record.share
    victims = []
    while shares.total() + new.share > MAX_DIRECTORY_BYTES:
        largest, most = max(shares.items(), key=lambda pair: (pair[1], pair[0]))
        if shares[new.address] + new.share >= most:
            return None
        victim = next(subkey for subkey in reversed(left) if left[subkey].address == largest)
        shares[largest] -= left.pop(victim).share
        victims.append(victim)
    return victims
