"""A node's ledger in a few words: earned, accepted last, what waits and why."""

from __future__ import annotations

from pathlib import Path

from codezero.ledger.items import describe
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
        return rows
    pending = read_pending(outbox)
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
