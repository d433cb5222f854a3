"""The file of a py-evm chain: py-evm's own key-value store, and tables of blocks, transactions and logs for lookups.

All changes of a block are one SQLite transaction, so the chain on disk is always consistent.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from eth.db.backends.base import BaseAtomicDB

from codezero.errors import ChainError
from codezero.runtime.database import transaction

Json = dict[str, Any]
"""An object as JSON-RPC has it."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS node (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS block (number INTEGER PRIMARY KEY, hash TEXT UNIQUE NOT NULL, json TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sent (hash TEXT PRIMARY KEY, transaction_json TEXT NOT NULL, receipt_json TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
    block INTEGER NOT NULL, position INTEGER NOT NULL, address TEXT NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (block, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS log_address ON log (address, block);
"""


class ChainStore(BaseAtomicDB):
    """The file. Only one thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        """Opens the file. Raises ChainError: it cannot be opened, or is no such database."""
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ChainError(f"cannot open the chain {path}: {error}; give another --folder") from error

    def close(self) -> None:
        self._db.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Makes the writes inside one transaction. Raises sqlite3.Error: they cannot be written."""
        return transaction(self._db)

    def add_block(self, block: Json, sent: Sequence[tuple[str, Json, Json]], logs: Sequence[Mapping[str, Any]]) -> None:
        """Adds a block, its transactions (hash, transaction, receipt), and their logs."""
        number = int(block["number"], 16)
        self._db.execute("INSERT INTO block VALUES (?, ?, ?)", (number, block["hash"], json.dumps(block)))
        rows = [(hash_, json.dumps(transaction), json.dumps(receipt)) for hash_, transaction, receipt in sent]
        self._db.executemany("INSERT INTO sent VALUES (?, ?, ?)", rows)
        entries = [(number, int(log["logIndex"], 16), log["address"], json.dumps(log)) for log in logs]
        self._db.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", entries)

    def block(self, number_or_hash: int | str) -> Json | None:
        """Returns a block, None if there is none."""
        column = "number" if isinstance(number_or_hash, int) else "hash"
        return self._one(f"SELECT json FROM block WHERE {column} = ?", number_or_hash)

    def sent(self, hash_: str) -> Json | None:
        """Returns a transaction, None if there is none."""
        return self._one("SELECT transaction_json FROM sent WHERE hash = ?", hash_)

    def receipt(self, hash_: str) -> Json | None:
        """Returns a transaction's receipt, None if there is none."""
        return self._one("SELECT receipt_json FROM sent WHERE hash = ?", hash_)

    def logs(self, first: int, last: int, addresses: Sequence[str]) -> Iterator[Json]:
        """Yields the logs of these blocks, oldest first, of the given addresses, or of all if there are none."""
        places = ", ".join("?" * len(addresses))
        only = f"AND address IN ({places}) " if addresses else ""
        query = f"SELECT json FROM log WHERE block BETWEEN ? AND ? {only}ORDER BY block, position"
        return (json.loads(row[0]) for row in self._db.execute(query, (first, last, *addresses)))

    def _one(self, query: str, value: int | str) -> Json | None:
        row = self._db.execute(query, (value,)).fetchone()
        return None if row is None else json.loads(row[0])

    # The interface for py-evm. Its batches need no transaction, since all writes are inside one already.

    @contextlib.contextmanager
    def atomic_batch(self) -> Iterator[ChainStore]:  # type: ignore[override]
        yield self

    def __getitem__(self, key: bytes) -> bytes:
        row = self._db.execute("SELECT value FROM node WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise KeyError(key)
        return bytes(row[0])

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._db.execute("INSERT OR REPLACE INTO node VALUES (?, ?)", (key, value))

    def __delitem__(self, key: bytes) -> None:
        if self._db.execute("DELETE FROM node WHERE key = ?", (key,)).rowcount == 0:
            raise KeyError(key)

    def _exists(self, key: bytes) -> bool:
        return self._db.execute("SELECT 1 FROM node WHERE key = ?", (key,)).fetchone() is not None
