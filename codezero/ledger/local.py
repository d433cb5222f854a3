"""A ledger in an SQLite file, which the nodes of a machine may share: registrations, rewards and votes are its rows.

Rounds count up with each one played, or follow a clock that the file has."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from codezero.config import Vote
from codezero.errors import LedgerError
from codezero.ledger.ballot import Ballot, own_reward
from codezero.runtime.amounts import counted
from codezero.types import RoundId, ScoredGroup

BUSY_S = 30.0
"""Longest wait in seconds for other nodes that write to the file."""
LOOK_S = 1.0
"""Longest sleep in seconds while waiting for a round, since the system clock may be set meanwhile."""
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
);
CREATE TABLE IF NOT EXISTS peer (peer_id TEXT PRIMARY KEY, registered_at_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS clock (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    start_s REAL NOT NULL,        -- Unix time at which round 0 began
    round_s REAL NOT NULL
);
"""

logger = logging.getLogger(__name__)


class SkippedRounds:
    """Warns that a node is slower than the clock of rounds: once, and again after it has kept up meanwhile."""

    def __init__(self) -> None:
        self._is_told = False

    def note(self, after: RoundId, now: int) -> None:
        """Takes note of a node that has finished the round `after` and continues with the round `now`."""
        skipped = now - after.number - 1
        if skipped and not self._is_told:
            logger.warning(
                "the swarm is at round %d: skipped %s. Nothing has to be done after a pause; if it is always "
                "so, which only the log then says, the node is too slow: use fewer tasks (swarm.num_local) or a "
                "smaller model",
                now,
                counted(skipped, "round"),
            )
        elif skipped:
            logger.info("the swarm is at round %d: skipped another %d", now, skipped)
        self._is_told = skipped > 0


class LocalLedger:
    """Implements `ports.Ledger` with a file. It has one reward and one vote per round and peer; settling again, at any
    stage, changes nothing, so a node that was killed between settling and saving can play the round once more."""

    def __init__(
        self,
        path: Path,
        peer_id: str,
        banned: Collection[str] = (),
        round_s: float = 0.0,
        vote: Vote = Vote.mean,
    ) -> None:
        """Opens the file and registers the peer. `banned` and `vote` are as in `Ballot`. `round_s` is the length of a
        round by the file's clock, in seconds, which the first node starts; 0 counts the rounds that this node plays.

        Raises LedgerError: the file cannot be opened, is not a ledger, or its rounds have another length.
        """
        self._path, self._peer_id, self._round_s = path, peer_id, round_s
        self._ballot, self._skipped = Ballot(vote, peer_id, banned), SkippedRounds()
        try:
            self._db = _open(path)
            with self._db:
                self._db.execute("INSERT INTO peer VALUES (?, ?) ON CONFLICT DO NOTHING", (peer_id, time.time()))
                self._start_s = self._clock() if round_s else 0.0
        except sqlite3.OperationalError as error:  # of the system: a damaged file is another sqlite3.Error
            do = "free space on its disk, or make the file and its folder readable and writable"
            raise LedgerError(f"cannot open the ledger {path}: {error}; {do}") from error
        except sqlite3.Error as error:
            raise LedgerError(
                f"cannot open the ledger {path}: {error}; move the file away to start a new one"
            ) from error

    def next_round(self, after: RoundId | None) -> RoundId:
        """Returns the number after `after`, or 1; with a clock, waits for a round later than `after`."""
        if not self._round_s:
            return RoundId(number=1 if after is None else after.number + 1)
        first = 0 if after is None else after.number + 1
        wait_s = self._start_s + first * self._round_s - time.time()
        if wait_s > 2 * self._round_s:
            logger.warning(
                "the clock of %s begins round %d only in %.0f s: it was set back, or the ledger does not belong to "
                "this node's state. Set the clock (NTP), or set ledger.path to the ledger of this state_dir",
                self._path,
                first,
                wait_s,
            )
        while True:
            now = math.floor((time.time() - self._start_s) / self._round_s)
            if now >= first:
                if after is not None:
                    self._skipped.note(after, now)
                return RoundId(number=now)
            time.sleep(min(LOOK_S, max(0.01, self._start_s + first * self._round_s - time.time())))

    def settle(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> None:
        """Stores the round's reward and vote unless it has them. Raises LedgerError: the file cannot be written."""
        self.store(round_id, *self.settled(round_id, groups))

    def settled(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> tuple[float, tuple[str, ...]]:
        """Returns the round's reward and vote: those that are stored, or else those of the groups. Raises LedgerError:
        the file cannot be read."""
        query = "SELECT reward, winners FROM settlement WHERE (round, peer_id) = (?, ?)"
        try:
            row = self._db.execute(query, (round_id.number, self._peer_id)).fetchone()
        except sqlite3.Error as error:
            raise LedgerError(f"cannot read round {round_id.number} in the ledger {self._path}: {error}") from error
        if row is None:
            return own_reward(groups), self._ballot.winners(round_id, groups)
        return row[0], tuple(json.loads(row[1]))

    def store(self, round_id: RoundId, reward: float, winners: Sequence[str]) -> None:
        """Stores a round's reward and vote unless it has them. Raises LedgerError: the file cannot be written."""
        row = (round_id.number, round_id.stage, self._peer_id, reward, json.dumps(winners), time.time())
        try:
            with self._db:
                self._db.execute(
                    "INSERT INTO settlement (round, stage, peer_id, reward, winners, settled_at_s) "
                    "SELECT ?, ?, ?, ?, ?, ? "
                    "WHERE NOT EXISTS (SELECT 1 FROM settlement WHERE (round, peer_id) = (?, ?))",
                    (*row, round_id.number, self._peer_id),
                )
        except sqlite3.Error as error:
            raise LedgerError(f"cannot write round {round_id.number} to the ledger {self._path}: {error}") from error

    def total_reward(self) -> float:
        """Returns the sum of this peer's rewards over all rounds. Raises LedgerError: the file cannot be read."""
        query = "SELECT COALESCE(SUM(reward), 0) FROM settlement WHERE peer_id = ?"
        try:
            return float(self._db.execute(query, (self._peer_id,)).fetchone()[0])
        except sqlite3.Error as error:
            raise LedgerError(
                f"cannot read the ledger {self._path}: {error}; check that its disk is there, and restore the file "
                "from a backup if it is damaged"
            ) from error

    def status(self) -> str:
        """Returns an empty text: a local ledger has no submissions that could wait."""
        return ""

    def close(self) -> None:
        self._db.close()

    def _clock(self) -> float:
        """Returns the Unix time at which round 0 began, and stores it if the file has none: now, or earlier so that the
        next round follows the last one in the file. Must run in a writing transaction. Raises LedgerError: the file's
        rounds have another length."""
        last, now_s = self._db.execute("SELECT COALESCE(MAX(round), -1) FROM settlement").fetchone()[0], time.time()
        start_s = now_s - (last + 1) * self._round_s
        self._db.execute("INSERT INTO clock VALUES (0, ?, ?) ON CONFLICT DO NOTHING", (start_s, self._round_s))
        start_s, round_s = self._db.execute("SELECT start_s, round_s FROM clock").fetchone()
        if round_s != self._round_s:
            raise LedgerError(
                f"the rounds of the ledger {self._path} take {round_s:g} s, not {self._round_s:g}: use "
                f"ledger.round_s={round_s:g}, or another ledger.path"
            )
        return float(start_s)


def _open(path: Path) -> sqlite3.Connection:
    """Opens the file, and makes its tables if it is new. Raises sqlite3.Error."""
    deadline = time.monotonic() + BUSY_S
    while True:
        db = sqlite3.connect(path, timeout=BUSY_S)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            db.close()
            # Several nodes may make the file at once, and SQLite does not wait for a lock to change the journal mode.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return db
