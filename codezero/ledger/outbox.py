"""A file of all that is to be submitted to the chain, kept until the chain has it.

`credit` adds the reward of a round to a sum. From time to time `fold` makes items of the sum and of the last vote; the
node's registration is an item too. Items are idempotent: like the contract, the outbox takes one reward and one vote of
a peer in a round. Each change is one transaction of SQLite, which is on disk when the method returns.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codezero.ledger.faults import OutboxError
from codezero.ledger.items import OPEN, SCHEMA, ItemState, Kind, LedgerItem, LedgerScope, Owed, item_of
from codezero.ledger.transactions import Transaction
from codezero.runtime.database import transaction
from codezero.types import RoundId

MILLIONTHS = 1_000_000
"""Units of the sum in a point of reward: integers add up exactly. The chain takes whole points."""
BUSY_S = 10.0
"""The seconds that a write waits at most while another program, such as a backup, writes to the file."""
KEPT_ROUNDS = 1000
"""The number of past rounds that are remembered as credited."""
TROUBLE, TROUBLE_SINCE, TROUBLE_SEEN, _TROUBLE_KIND = "trouble", "trouble since", "trouble seen", "trouble kind"
"""Keys of notes for readers of the outbox: why items do not reach the chain, and two Unix times, since when that is so
and when it was last seen."""
_OPEN = ", ".join("?" * len(OPEN))
_SENT = ("hash", "raw", "nonce", "max_fee_wei", "tip_wei", "signed_at_s", "sent_at_s")
"""The columns of the table `sent` after the item, which are the fields of a transaction."""
_MAX_PEER_ID = 128
"""The most characters of a winner's peer id, which is text of other peers; real ones have 46 or 52."""


class Outbox:
    """The file, usable from several threads while `codezero status` reads it. All methods raise OutboxError: the disk
    is full or the file damaged; then nothing has changed."""

    _notes = ""
    """The prefix of the keys of the notes on trouble."""

    def __init__(self, path: Path, scope: LedgerScope) -> None:
        self._path, self.scope, self._lock = path, scope, threading.RLock()
        self._key = (scope.chain_id, scope.contract, scope.peer_id)
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=BUSY_S)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")  # a hash must outlive a power cut before its transaction leaves
            self._db.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise OutboxError(
                f"cannot open the outbox {path}: {error}; free some disk, or move the file away to start a new one "
                "(what it holds is then never submitted)"
            ) from error

    def credit(self, round_id: RoundId, reward: float, winners: Sequence[str]) -> None:
        """Adds a round's reward to the sum, and replaces the next vote, unless the round was credited before: a node
        plays one stage of it, and after a kill perhaps another one."""
        key = (round_id.number, round_id.stage)
        millionths = round(reward * MILLIONTHS)
        vote = json.dumps([winner for winner in dict.fromkeys(winners) if _plain(winner)])
        with self._change():
            known = "SELECT 1 FROM credit WHERE (chain_id, contract, peer_id, round) = (?, ?, ?, ?)"
            if self._run(known, *self._key, round_id.number).fetchone():
                return
            self._run("INSERT INTO credit VALUES (?, ?, ?, ?, ?, ?)", *self._key, *key, millionths)
            self._run(
                "INSERT INTO owed VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "millionths = millionths + excluded.millionths, since_s = COALESCE(since_s, excluded.since_s), "
                "round = excluded.round, stage = excluded.stage, winners = excluded.winners",
                *self._key,
                millionths,
                time.time(),
                *key,
                vote,
            )
            old = "DELETE FROM credit WHERE (chain_id, contract, peer_id) = (?, ?, ?) AND round < ?"
            self._run(old, *self._key, round_id.number - KEPT_ROUNDS)

    def owed(self) -> Owed:
        """Returns the sum that is in no item yet."""
        with self._reading():
            row = self._owed_row()
        return Owed(points=0.0, since_s=None) if row is None else Owed(points=row[0] / MILLIONTHS, since_s=row[1])

    def fold(self, seen: RoundId | None = None) -> None:
        """Makes items of the sum's whole points and of the last round's vote; a fraction of a point stays in the sum.
        They are for that round, or for the chain's round `seen` where the node is ahead of it. If there are items of
        that round already, nothing is done, and sum and vote wait for the next one."""
        with self._change():
            row = self._owed_row()
            if row is None or row[1] is None:
                return
            millionths, _, *last, winners = row
            number, stage = min(last, [seen.number, seen.stage]) if seen else last
            done = "SELECT 1 FROM item WHERE kind IN (?, ?) AND (chain_id, contract, peer_id, round) = (?, ?, ?, ?)"
            if self._run(done, Kind.REWARD, Kind.VOTE, *self._key, number).fetchone():
                return
            points = abs(millionths) // MILLIONTHS * (1 if millionths > 0 else -1)
            if points:
                self._add(Kind.REWARD, RoundId(number=number, stage=stage), reward=points)
            if winners != "[]":
                self._add(Kind.VOTE, RoundId(number=number), winners=winners)
            self._run(
                "UPDATE owed SET millionths = ?, since_s = NULL WHERE (chain_id, contract, peer_id) = (?, ?, ?)",
                millionths - points * MILLIONTHS,
                *self._key,
            )

    def ensure_registration(self) -> None:
        """Adds the registration as an item, or reopens the one that was done before: the chain may have lost it."""
        with self._change():
            if not self._add(Kind.REGISTRATION, RoundId(number=0)):
                self._run(
                    "UPDATE item SET state = ?, due_at_s = ?, tries = 0 WHERE kind = ? AND "
                    f"state NOT IN ({_OPEN}) AND (chain_id, contract, peer_id) = (?, ?, ?)",
                    ItemState.WAITING,
                    time.time(),
                    Kind.REGISTRATION,
                    *OPEN,
                    *self._key,
                )

    def open_items(self) -> list[LedgerItem]:
        """Returns this scope's items that are not done or dropped: the registration, then the others, oldest first."""
        with self._reading():
            rows = self._run(
                f"SELECT * FROM item WHERE state IN ({_OPEN}) AND (chain_id, contract, peer_id) = (?, ?, ?) "
                "ORDER BY kind != ?, id",
                *OPEN,
                *self._key,
                Kind.REGISTRATION,
            ).fetchall()
        return [item_of(row) for row in rows]

    def sent(self, item: LedgerItem) -> list[Transaction]:
        """Returns the item's transactions, oldest first."""
        with self._reading():
            query = f"SELECT {', '.join(_SENT)} FROM sent WHERE item = ? ORDER BY rowid"
            rows = self._run(query, item.id).fetchall()
        return [Transaction(**dict(zip(_SENT, row, strict=True))) for row in rows]

    def store(self, item: LedgerItem, transaction: Transaction) -> None:
        """Stores a transaction that is about to be sent. The same one may come again."""
        with self._change():
            values = [getattr(transaction, name) for name in _SENT]
            self._run("INSERT INTO sent VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", item.id, *values)
            self._set(item, state=ItemState.SENT)

    def hand_over(self, item: LedgerItem, due_at_s: float) -> None:
        """Notes that a service is about to be asked to sign and send; it is not asked again before `due_at_s`."""
        with self._change():
            self._set(item, state=ItemState.HANDED_OVER, due_at_s=due_at_s)

    def taken(self, transaction: Transaction) -> None:
        """Notes that the RPC took a transaction."""
        with self._change():
            self._run("UPDATE sent SET sent_at_s = ? WHERE hash = ?", time.time(), transaction.hash)

    def finish(self, item: LedgerItem, state: ItemState, note: str, reference: str = "") -> None:
        """Sets an item to a state that is not open, so that it is never sent again."""
        with self._change():
            self._set(item, state=state, note=note, reference=reference)
            self._note_verdict(item, accepted=state is ItemState.DONE, reason="" if state is ItemState.DONE else note)

    def refused(self, item: LedgerItem, reason: str) -> None:
        """Notes that the chain refused an item; it may take it later."""
        with self._change():
            self._note_verdict(item, accepted=False, reason=reason)

    def postpone(
        self,
        item: LedgerItem,
        due_at_s: float,
        note: str,
        *,
        tried: bool = True,
        unsent: bool = False,
        reference: str | None = None,
    ) -> None:
        """Sets the time of an item's next try, and counts a try if it was `tried`. `unsent` says that none of its
        transactions can be mined any more; `reference` is the hash of one that was sent just now."""
        with self._change():
            self._set(item, due_at_s=due_at_s, tries=item.tries + tried, note=note)
            if reference is not None:
                self._set(item, reference=reference)
            if unsent:
                self._set(item, state=ItemState.WAITING)

    def note_trouble(self, text: str, kind: str = "") -> None:
        """Stores why items do not reach the chain, in words, with the times; an empty text means that they do. Trouble
        of the same kind goes on, though its words may have other numbers."""
        now_s = repr(time.time())
        with self._change():
            if not self.recall(self._notes + TROUBLE) or kind != self.recall(self._notes + _TROUBLE_KIND):
                self._note(self._notes + TROUBLE_SINCE, now_s)
            self._note(self._notes + TROUBLE, text)
            self._note(self._notes + _TROUBLE_KIND, kind)
            self._note(self._notes + TROUBLE_SEEN, now_s)

    def remember(self, key: str, value: str) -> None:
        """Stores a short text under a key, over restarts."""
        with self._change():
            self._note(key, value)

    def recall(self, key: str) -> str:
        """Returns the text under a key; empty if there is none."""
        with self._reading():
            row = self._run("SELECT value FROM note WHERE key = ?", key).fetchone()
        return "" if row is None else str(row[0])

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _add(self, kind: Kind, round_id: RoundId, reward: int = 0, winners: str = "[]") -> bool:
        """Makes an item. Returns False if there is one of this kind, scope, round and stage."""
        now_s = time.time()
        return bool(
            self._run(
                "INSERT INTO item (kind, chain_id, contract, peer_id, round, stage, reward, winners, state, "
                "created_at_s, tries, due_at_s, note, reference) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, '', '') "
                "ON CONFLICT DO NOTHING",
                kind,
                *self._key,
                round_id.number,
                round_id.stage,
                reward,
                winners,
                ItemState.WAITING,
                now_s,
                now_s,
            ).rowcount
        )

    def _note_verdict(self, item: LedgerItem, *, accepted: bool, reason: str) -> None:
        self._run(
            "INSERT INTO verdict VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at_s = excluded.at_s, "
            "reason = excluded.reason",
            item.id,
            int(accepted),
            time.time(),
            reason,
        )

    def _note(self, key: str, value: str) -> None:
        self._run("INSERT INTO note VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)

    def _set(self, item: LedgerItem, **values: str | float) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        self._run(f"UPDATE item SET {columns} WHERE id = ?", *values.values(), item.id)

    def _owed_row(self) -> Any:
        return self._run(
            "SELECT millionths, since_s, round, stage, winners FROM owed WHERE (chain_id, contract, peer_id) = "
            "(?, ?, ?)",
            *self._key,
        ).fetchone()

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._db.execute(statement, values)

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Runs the body as one transaction."""
        with self._reading(), transaction(self._db):
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise OutboxError(
                    f"cannot use the outbox {self._path}: {error}; free some disk, or check that the file is complete "
                    "and writable"
                ) from error


def _plain(peer_id: str) -> bool:
    return 0 < len(peer_id) <= _MAX_PEER_ID and peer_id.isascii() and peer_id.isprintable()
