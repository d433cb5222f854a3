"""What a server keeps for others, and who gets how much of it.

Memory is shared by dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 1998): an address may hold as much as is still
free, so one flooder leaves half of it to others. A full directory makes room for an address that has less in it by
dropping the newest of the address that has most, so many identities of one address cannot crowd out others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hivemind.dht.routing import DHTID

MAX_STORED_BYTES = 256 << 20
OVERHEAD_BYTES = 1024
"""What Python needs for a record beside its bytes, rounded up: many small records are no way around the limit."""
MAX_ENTRIES = 64
"""Entries of one directory."""
MAX_DIRECTORY_BYTES = 3 << 20
"""Of one directory, for all of it goes out in one message and p2p messages end at 4 MiB."""
SWEEP_S = 30.0
"""Between two searches for records that nobody asks for any more."""

Version = tuple[float, float]
"""Of two records with the same name, the one with the higher version stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRecord:
    """One record that somebody wants stored."""

    key: DHTID
    subkey: str | None
    """None for a plain value, else the entry of a directory."""
    value: bytes
    """As it lies in the DHT, msgpack header included."""
    expires_at_s: float
    sender: str
    """Peer id of the node that brings it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """One record that is kept."""

    value: bytes
    expires_at_s: float
    version: Version
    address: str
    """Whom it counts for."""
    size: int

    @property
    def share(self) -> int:
        """Of its directory: no less than what an entry may have when the directory is full of them."""
        return max(self.size, MAX_DIRECTORY_BYTES // MAX_ENTRIES)


class RecordStore:
    """Records by key and subkey; a plain value has the subkey None."""

    def __init__(self, capacity_bytes: int = MAX_STORED_BYTES) -> None:
        self._capacity = capacity_bytes
        self._records: dict[DHTID, dict[str | None, StoredRecord]] = {}
        self._held: Counter[str] = Counter()
        """Bytes by address."""
        self._swept_s = time.monotonic()

    def under(self, key: DHTID) -> Mapping[str | None, StoredRecord]:
        """All records of a key that have not expired, by subkey, the last stored last."""
        now = time.time()
        for subkey, record in list(self._records.get(key, {}).items()):
            if record.expires_at_s <= now:
                self._drop(key, subkey)
        return self._records.get(key, {})

    def add(self, item: OfferedRecord, version: Version, address: str) -> bool:
        """Keeps a record for an address, in place of an older version; False if there is no room for it."""
        self._sweep()
        record = StoredRecord(
            value=item.value,
            expires_at_s=item.expires_at_s,
            version=version,
            address=address,
            size=len(item.value) + len(item.subkey or "") + OVERHEAD_BYTES,
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
    """The entries of a directory that must go for a new one; None if they have more right to stay."""
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
