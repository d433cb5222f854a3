"""A node's ledger in a few words: earned, accepted last, what waits and why."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from codezero.errors import LedgerError
from codezero.ledger.items import State, describe
from codezero.ledger.leaderboard import read_totals
from codezero.ledger.pending import read_pending


def ledger_rows(folder: Path, now_s: float) -> list[tuple[str, str]]:
    """Rows of (label, text) of the state folder; untrusted text in part. Raises LedgerError: a file is unreadable."""
    ledger, outbox = folder / "ledger.sqlite", folder / "outbox.sqlite"
    if not ledger.exists():
        return []
    rounds, reward = read_totals(ledger)
    rows = [("earned", f"{reward:+.2f} in {rounds} round{'s' * (rounds != 1)}")]
    if not outbox.exists():
        return [*rows, *_last_round(ledger)]
    pending = read_pending(outbox)
    done = [item for item in pending.items if item.state is State.DONE]
    if done:
        rows.append(("accepted", f"{done[-1].kind.value} of round {done[-1].round_id.number}"))
    waiting = describe(pending.items, now_s)
    unsent = sum(points for _, points in pending.owed)
    if unsent:
        rows.append(("unsent", f"{unsent:+.2f}, to be submitted later"))
    if waiting:
        first, more = waiting[0], f" and {len(waiting) - 1} more" * (len(waiting) > 1)
        rows.append(("pending", f"{first.what}{more}, {first.state}{f': {first.note}' if first.note else ''}"))
    else:
        rows.append(("pending", "nothing"))
    if pending.trouble:
        rows.append(("trouble", pending.trouble))
    return rows


def _last_round(path: Path) -> list[tuple[str, str]]:
    """Raises LedgerError."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
            row = db.execute("SELECT round, reward FROM settlement ORDER BY id DESC LIMIT 1").fetchone()
    except sqlite3.Error as error:
        raise LedgerError(f"cannot read the ledger {path}: {error}; see that the file is whole and readable") from error
    return [("accepted", f"{row[1]:+.2f} of round {row[0]}")] if row else []
