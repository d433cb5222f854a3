"""Reads a node's ledger and outbox from the files of its state folder, while the node runs or after.

In a `LedgerView` a file that is missing or damaged is a line of text, not an error.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from codezero.errors import LedgerError
from codezero.ledger.items import OPEN, SUBMISSIONS, ItemState, Kind, LedgerItem, LedgerScope, in_words, item_of
from codezero.ledger.location import LEDGER, OUTBOX, LedgerLocation, read_location
from codezero.ledger.outbox import MILLIONTHS, TROUBLE, TROUBLE_SEEN, TROUBLE_SINCE
from codezero.ledger.view import LedgerView, PendingItem, SubmissionView, Trouble
from codezero.runtime.database import is_missing, reading

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The content of an outbox."""

    items: Sequence[LedgerItem]
    """All items there ever were, oldest first."""
    owed: Sequence[tuple[LedgerScope, float]]
    """Points that are in no item yet."""
    trouble: str
    """The reason why items do not reach the chain, in words; empty if they do. Untrusted text in part."""


def read_pending(path: Path) -> Pending:
    """Reads an outbox. Raises LedgerError: the file is missing, damaged or unreadable."""
    with reading(path, "outbox") as db:
        items = [item_of(row) for row in db.execute("SELECT * FROM item ORDER BY id")]
        sums = db.execute("SELECT chain_id, contract, peer_id, millionths FROM owed WHERE millionths != 0").fetchall()
        note = db.execute("SELECT value FROM note WHERE key = ?", (TROUBLE,)).fetchone()
    owed = [
        (LedgerScope(chain_id=chain_id, contract=contract, peer_id=peer_id), millionths / MILLIONTHS)
        for chain_id, contract, peer_id, millionths in sums
    ]
    return Pending(items=items, owed=owed, trouble="" if note is None else str(note[0]))


def read_view(folder: Path) -> LedgerView:
    """Reads the ledger of a node's state folder. Problems with its files are words in the result."""
    problems: list[str] = []
    found = _tried(lambda: read_location(folder), problems)
    ledger = Path(found.path) if found and found.path else folder / LEDGER
    outbox = folder / OUTBOX
    kind = found.kind if found else "chain" if not is_missing(outbox) else "local" if not is_missing(ledger) else ""
    view = LedgerView(kind=kind, peer_id=found.peer_id if found else "", path=str(ledger))
    if is_missing(ledger):
        problems.append(f"there is no ledger at {ledger}: no node has run with this state folder yet, or it was moved")
    else:
        view = _tried(lambda: _with_rounds(view, ledger), problems) or view
    if kind != "local" and not is_missing(outbox):
        view = _tried(lambda: _with_outbox(view, outbox, found, problems), problems) or view
    return replace(view, problems=tuple(problems))


def _tried(read: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return read()
    except LedgerError as error:
        problems.append(str(error))
        return None


def _with_rounds(view: LedgerView, path: Path) -> LedgerView:
    """Adds the rounds of the ledger file. Raises LedgerError: the file cannot be read."""
    with reading(path, "ledger") as db:
        peers = [peer for (peer,) in db.execute("SELECT peer_id FROM peer LIMIT 2")]
        peer_id = view.peer_id or (peers[0] if len(peers) == 1 else "")
        own, values = ("WHERE peer_id = ?", (peer_id,)) if peer_id else ("", ())
        query = f"SELECT COUNT(*), COALESCE(SUM(reward), 0) FROM settlement {own}"
        num_rounds, earned = db.execute(query, values).fetchone()
        query = f"SELECT id, round, reward, winners, settled_at_s FROM settlement {own} ORDER BY id DESC LIMIT 1"
        row = db.execute(query, values).fetchone()
    view = replace(view, peer_id=peer_id, num_rounds=num_rounds, earned=float(earned))
    if row is None or view.kind != "local":
        return view
    id_, number, reward, winners, at_s = row
    votes = tuple(json.loads(winners))
    last = SubmissionView(
        kind="round",
        what=f"reward {reward:+.2f} and a vote for {', '.join(votes)} in round {number}",
        round=number,
        points=reward,
        winners=votes,
        reference=f"row {id_}",
        at_s=at_s,
    )
    return replace(view, last_accepted=last, last_reward=last)


def _with_outbox(view: LedgerView, path: Path, found: LedgerLocation | None, problems: list[str]) -> LedgerView:
    """Adds the outbox's content. Raises LedgerError: the file cannot be read."""
    with reading(path, "outbox") as db:
        scope = (found and found.scope) or newest_scope(db)
        if scope is None:
            return view
        marks = ", ".join("?" * len(OPEN))
        query = f"SELECT * FROM item WHERE state IN ({marks}) ORDER BY kind != ?, id"
        items = [item_of(row) for row in db.execute(query, (*OPEN, Kind.REGISTRATION))]
        items = [item for item in items if item.kind in SUBMISSIONS]
        notes = dict(db.execute("SELECT key, value FROM note").fetchall())
        sums = db.execute("SELECT chain_id, contract, peer_id, millionths, since_s FROM owed").fetchall()
        accepted, reward, refused = (
            _last(db, scope, accepted=True),
            _last(db, scope, accepted=True, kind=Kind.REWARD),
            _last(db, scope, accepted=False),
        )
    trouble = trouble_in(notes)
    unsent_points, unsent_since_s = 0.0, None
    for *key, millionths, since_s in sums:
        if tuple(key) == (scope.chain_id, scope.contract, scope.peer_id):
            unsent_points, unsent_since_s = millionths / MILLIONTHS, since_s
        elif millionths:
            problems.append(
                f"{millionths / MILLIONTHS:+.2f} points of peer {key[2]} wait for contract {key[1]} on chain {key[0]}, "
                "which this node does not use now"
            )
    return replace(
        view,
        peer_id=scope.peer_id,
        chain_id=scope.chain_id,
        contract=scope.contract,
        last_accepted=accepted,
        last_reward=reward,
        last_refused=refused,
        pending=tuple(_pending(item, items, scope, trouble) for item in items),
        unsent_points=unsent_points,
        unsent_since_s=unsent_since_s,
        trouble=trouble,
    )


def trouble_in(notes: Mapping[str, str], of: str = "") -> Trouble | None:
    """Returns the trouble in an outbox's notes. `of` begins their keys."""
    if not notes.get(of + TROUBLE):
        return None
    since_s, seen_s = float(notes[of + TROUBLE_SINCE]), float(notes[of + TROUBLE_SEEN])
    return Trouble(text=notes[of + TROUBLE], since_s=since_s, seen_s=seen_s)


def newest_scope(db: sqlite3.Connection) -> LedgerScope | None:
    """Returns the scope of an outbox's last credit or item, for folders without a location. Raises sqlite3.Error."""
    for table in ("owed", "item WHERE kind NOT IN ('bet', 'claim')"):
        row = db.execute(f"SELECT chain_id, contract, peer_id FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
        if row is not None:
            return LedgerScope(chain_id=row[0], contract=row[1], peer_id=row[2])
    return None


def _last(
    db: sqlite3.Connection, scope: LedgerScope, *, accepted: bool, kind: Kind | None = None
) -> SubmissionView | None:
    """Returns the last item that the chain accepted or refused; None if there is none."""
    of_kind, values = ("AND kind = ?", (kind,)) if kind else ("", ())
    values = (scope.chain_id, scope.contract, scope.peer_id, *values)
    whose = f"(chain_id, contract, peer_id) = (?, ?, ?) {of_kind}"
    query = (
        f"SELECT item.*, at_s, reason FROM verdict JOIN item ON item.id = verdict.item WHERE {whose} "
        "AND accepted = ? ORDER BY at_s DESC, item.id DESC LIMIT 1"
    )
    row = db.execute(query, (*values, int(accepted))).fetchone()
    return None if row is None else SubmissionView(**_told(item_of(row[:-2])), at_s=row[-2], reason=row[-1])


def _told(item: LedgerItem) -> dict[str, Any]:
    """Returns the fields that both records of an item have."""
    return {
        "kind": item.kind.value,
        "what": in_words(item),
        "round": None if item.kind is Kind.REGISTRATION else item.round_id.number,
        "points": item.reward if item.kind is Kind.REWARD else None,
        "winners": item.winners,
        "reference": item.reference,
    }


def _pending(
    item: LedgerItem, others: Sequence[LedgerItem], scope: LedgerScope, trouble: Trouble | None
) -> PendingItem:
    registering = any(other.kind is Kind.REGISTRATION and other.scope == item.scope for other in others)
    return PendingItem(
        **_told(item),
        state=item.state.value,
        since_s=item.created_at_s,
        tries=item.tries,
        next_try_s=item.due_at_s,
        why=_why(item, registering, item.scope == scope, trouble.text if trouble else ""),
        last_error=item.note,
    )


def _why(item: LedgerItem, registering: bool, is_used: bool, trouble: str) -> str:
    """Returns why an open item is not on the chain yet, as `submissions.Submissions.deliver` decides it."""
    if not is_used:
        return f"it is for contract {item.scope.contract} on chain {item.scope.chain_id}, which this node does not use"
    if item.state is ItemState.SENT:
        because = trouble or item.note
        return "sent, and not confirmed by the chain yet" + (f": {because}" if because else "")
    if item.state is ItemState.HANDED_OVER:
        return "given to the sign-in app, and not confirmed by the chain yet" + (f": {trouble}" if trouble else "")
    if trouble:
        return trouble
    if registering and item.kind is not Kind.REGISTRATION:
        return "the peer id is not registered yet"
    if item.note:
        return item.note
    return "new: submitted at the node's next look at the chain"
