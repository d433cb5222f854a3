"""A ledger of one's own: rounds count up by themselves, rewards and votes are rows of an SQLite file."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from codezero.errors import LedgerError
from codezero.ledger import ballot
from codezero.types import Receipt, RoundId, ScoredGroup

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settlement (
    id INTEGER PRIMARY KEY,
    round INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    peer_id TEXT NOT NULL,
    reward REAL NOT NULL,
    winners TEXT NOT NULL,        -- JSON list of peer ids
    settled_at_s REAL NOT NULL,   -- Unix time
    UNIQUE (round, stage, peer_id)
)
"""


class LocalLedger:
    """ports.Ledger in a file. One reward and one vote per (round, stage, peer): settling again changes nothing, so a
    node that was killed between settling and saving can play the round once more."""

    def __init__(self, path: Path, peer_id: str, banned: Collection[str] = ()) -> None:
        """`banned` peers are never voted for.

        Raises LedgerError: the file cannot be opened or is not such a database.
        """
        self._path, self._peer_id, self._banned = path, peer_id, banned
        try:
            self._db = sqlite3.connect(path)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(_SCHEMA)
        except sqlite3.Error as error:
            raise LedgerError(
                f"cannot open the ledger {path}: {error}; move the file away to start a new one"
            ) from error

    def next_round(self, after: RoundId | None) -> RoundId:
        """The round after the last one this node finished, from 1."""
        return RoundId(number=1 if after is None else after.number + 1)

    def settle(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> Receipt:
        """Stores reward and vote of the round, or finds those stored before. Raises LedgerError: cannot be written."""
        reward, winners = ballot.own_reward(groups), ballot.winners(groups, self._peer_id, self._banned)
        key = (round_id.number, round_id.stage, self._peer_id)
        try:
            with self._db:
                self._db.execute(
                    "INSERT INTO settlement (round, stage, peer_id, reward, winners, settled_at_s) "
                    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (*key, reward, json.dumps(winners), time.time()),
                )
            row = self._db.execute(
                "SELECT id, reward, winners, settled_at_s FROM settlement WHERE (round, stage, peer_id) = (?, ?, ?)",
                key,
            ).fetchone()
        except sqlite3.Error as error:
            raise LedgerError(f"cannot write round {round_id.number} to the ledger {self._path}: {error}") from error
        return Receipt(
            round_id=round_id,
            reward=row[1],
            winners=tuple(json.loads(row[2])),
            reference=f"row {row[0]}",
            settled_at_s=row[3],
        )

    def total_reward(self) -> float:
        """Sum of this peer's rewards over all rounds."""
        query = "SELECT COALESCE(SUM(reward), 0) FROM settlement WHERE peer_id = ?"
        return float(self._db.execute(query, (self._peer_id,)).fetchone()[0])

    def status(self) -> str:
        """Nothing here can be in the way."""
        return ""

    def close(self) -> None:
        self._db.close()


def read_totals(path: Path) -> tuple[int, float]:
    """Rounds and the sum of their rewards in a ledger that a node may be using. Raises LedgerError: unreadable."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
            rounds, reward = db.execute("SELECT COUNT(*), COALESCE(SUM(reward), 0) FROM settlement").fetchone()
    except sqlite3.Error as error:
        raise LedgerError(f"cannot read the ledger {path}: {error}; see that the file is whole and readable") from error
    return int(rounds), float(reward)
