"""The leaderboard of a chain as far as it was read, in a file beside a node's outbox that can be deleted at any time.

Each block is counted once, also if several processes read the chain for the file: one transaction writes its changes
and the position after it. The newest blocks may be replaced by others, so their changes are stored apart and counted
anew each time.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codezero.errors import LedgerError
from codezero.ledger.leaderboard import LeaderboardRow
from codezero.runtime.database import read_only, transaction

TALLY = "leaderboard.sqlite"
FIRST_SPAN = 10_000
"""The number of blocks in the first request."""
MAX_PEERS = 1_000_000
"""The most peers in the file: whoever pays for gas can register any number."""
MAX_PEER_ID = 128
"""The most characters of a peer id; real ones have 46 or 52."""
BUSY_S = 5.0
"""Longest wait in seconds for another process that writes to the file."""
_SETTLED, _RECENT = 0, 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS place (
    peer_id TEXT NOT NULL,
    recent INTEGER NOT NULL,      -- 1: from blocks that may yet be replaced
    total REAL,                   -- NULL: no event has told it
    rewards INTEGER NOT NULL,
    wins INTEGER NOT NULL,
    round INTEGER NOT NULL,       -- the last one in which it took part, -1 for none
    PRIMARY KEY (peer_id, recent)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS place_recent ON place (recent);
CREATE TABLE IF NOT EXISTS progress (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    chain_id INTEGER NOT NULL,
    contract TEXT NOT NULL,
    next_block INTEGER NOT NULL,  -- the first one that is not counted
    last_hash TEXT NOT NULL,      -- hash of the block before it, empty without one
    span INTEGER NOT NULL,        -- number of blocks in the next request
    read_block INTEGER NOT NULL,  -- the newest block that is counted, recent ones included; -1 before
    head_block INTEGER NOT NULL,  -- the newest block that was seen, -1 before
    read_at_s REAL                -- Unix time at which all was counted, NULL before
);
"""
_PLACES = """
SELECT peer_id,
    COALESCE(MAX(CASE recent WHEN 1 THEN total END), MAX(CASE recent WHEN 0 THEN total END), 0) AS reward,
    SUM(rewards), SUM(wins) AS votes, MAX(round)
FROM place {where} GROUP BY peer_id ORDER BY reward DESC, votes DESC, peer_id
"""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyChange:
    """The changes of one peer's row by an event."""

    peer_id: str
    """Untrusted text of at most MAX_PEER_ID characters."""
    total: float | None = None
    """The peer's sum of rewards after the event; None if the event does not say it."""
    rewards: int = 0
    """The number of rewards added."""
    wins: int = 0
    """The number of votes added."""
    round: int = -1
    """The round in which the peer took part; -1 if the event does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The row of the table `progress`, which describes the fields."""

    next_block: int
    last_hash: str
    span: int
    read_block: int
    head_block: int
    read_at_s: float | None


class Tally:
    """The leaderboard file of one contract; a file of another contract is cleared. All methods raise LedgerError: it
    cannot be used."""

    def __init__(self, path: Path, chain_id: int, contract: str) -> None:
        self._path, self._scope = path, (chain_id, contract)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):  # a full disk or missing rights; the file itself is whole
                raise self._unusable(error) from error
            logger.warning("%s is damaged (%s): begun anew from the chain. Nothing has to be done", path, error)
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            with self._using():
                self._open()

    def progress(self) -> Progress:
        """Returns how far the chain was read."""
        with self._using():
            names = ("next_block", "last_hash", "span", "read_block", "head_block", "read_at_s")
            row = self._db.execute(f"SELECT {', '.join(names)} FROM progress").fetchone()
        return Progress(**dict(zip(names, row, strict=True)))

    def add(self, found: Sequence[TallyChange], at: Progress, last: int, last_hash: str) -> None:
        """Counts the blocks from `at.next_block` to `last`, unless another process has counted them."""
        progress = {"next_block": last + 1, "read_block": last, "last_hash": last_hash}
        self._move(found, at, progress, _SETTLED)

    def add_recent(self, found: Sequence[TallyChange], at: Progress, head: int) -> None:
        """Counts the blocks from `at.next_block` to the newest, until the next call replaces their changes."""
        self._move(found, at, {"read_block": head, "read_at_s": time.time()}, _RECENT)

    def note_span(self, span: int) -> None:
        """Stores how many blocks the next request asks for."""
        with self._change():
            self._db.execute("UPDATE progress SET span = ?", (span,))

    def note_head(self, head: int) -> None:
        """Stores the newest block that was seen."""
        with self._change():
            self._db.execute("UPDATE progress SET head_block = ?", (head,))

    def reset(self) -> None:
        """Clears the file, for when the chain is not the one that was read so far."""
        with self._change():
            self._clear()

    def places(self, most: int) -> list[LeaderboardRow]:
        """Returns the best rows, as `leaderboard.best_first` sorts them."""
        with self._using():
            rows = self._db.execute(_PLACES.format(where="") + "LIMIT ?", (most,)).fetchall()
        return [_place(row) for row in rows]

    def num_peers(self) -> int:
        """Returns the number of all peers."""
        with self._using():
            return int(self._db.execute("SELECT COUNT(DISTINCT peer_id) FROM place").fetchone()[0])

    def own(self, peer_id: str) -> tuple[LeaderboardRow, int] | None:
        """Returns a peer's row and its rank from 1; None if no event names the peer."""
        with self._using():
            row = self._db.execute(_PLACES.format(where="WHERE peer_id = ?"), (peer_id,)).fetchone()
            if row is None:
                return None
            better = (
                f"SELECT COUNT(*) FROM ({_PLACES.format(where='')}) WHERE reward > ? OR (reward = ? AND votes > ?) "
                "OR (reward = ? AND votes = ? AND peer_id < ?)"
            )
            reward, votes = row[1], row[3]
            rank = 1 + self._db.execute(better, (reward, reward, votes, reward, votes, peer_id)).fetchone()[0]
        return _place(row), rank

    def close(self) -> None:
        self._db.close()

    def _open(self) -> None:
        """Opens the file and clears it if it belongs to another contract. Raises sqlite3.Error."""
        self._db = self._connected()
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
            with transaction(self._db):
                if self._db.execute("SELECT chain_id, contract FROM progress").fetchone() != self._scope:
                    self._clear()
        except BaseException:
            self._db.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        folder = self._path.parent
        if not folder.is_dir() or os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_S)
        # The folder is mounted read-only: a copy in memory of what others have read.
        db = sqlite3.connect(":memory:", isolation_level=None)
        if self._path.exists():
            with read_only(self._path, BUSY_S) as found:
                found.backup(db)
        return db

    def _clear(self) -> None:
        self._db.execute("DELETE FROM place")
        self._db.execute(
            "INSERT OR REPLACE INTO progress VALUES (0, ?, ?, 0, '', ?, -1, -1, NULL)", (*self._scope, FIRST_SPAN)
        )

    def _move(self, found: Sequence[TallyChange], at: Progress, progress: dict[str, object], recent: int) -> None:
        columns = ", ".join(f"{name} = ?" for name in progress)
        with self._change():
            moved = self._db.execute(
                f"UPDATE progress SET {columns} WHERE next_block = ? AND last_hash = ?",
                (*progress.values(), at.next_block, at.last_hash),
            ).rowcount
            if moved:
                self._db.execute("DELETE FROM place WHERE recent = ?", (_RECENT,))
                self._count(found, recent)

    def _count(self, found: Sequence[TallyChange], recent: int) -> None:
        (num_rows,) = self._db.execute("SELECT COUNT(*) FROM place").fetchone() if found else (0,)
        for change in found:
            values = {**asdict(change), "recent": recent}
            updated = self._db.execute(
                "UPDATE place SET total = COALESCE(:total, total), rewards = rewards + :rewards, wins = wins + :wins, "
                "round = MAX(round, :round) WHERE peer_id = :peer_id AND recent = :recent",
                values,
            ).rowcount
            if not updated and num_rows < MAX_PEERS:
                self._db.execute(
                    "INSERT INTO place VALUES (:peer_id, :recent, :total, :rewards, :wins, :round)", values
                )
                num_rows += 1

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self._using(), transaction(self._db):
            yield

    @contextmanager
    def _using(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> LedgerError:
        return LedgerError(
            f"cannot use {self._path}: {error}; free some disk, or remove the file to have it read from the chain again"
        )


def _place(row: Sequence[Any]) -> LeaderboardRow:
    peer_id, reward, rewards, wins, number = row
    last = None if number == -1 else number
    return LeaderboardRow(peer_id=peer_id, reward=float(reward), rounds=rewards, wins=wins, last_round=last)
