"""What waits in an outbox, read while another process may be using it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codezero.ledger.items import LedgerItem, LedgerScope, item_of
from codezero.ledger.outbox import MILLIONTHS, TROUBLE
from codezero.runtime.database import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    items: Sequence[LedgerItem]
    """All there ever were, the oldest first."""
    owed: Sequence[tuple[LedgerScope, float]]
    """Points that are in no item yet."""
    trouble: str
    """What keeps items from the chain, in words; empty while all is well. Untrusted text in part."""


def read_pending(path: Path) -> Pending:
    """Raises LedgerError: the file is missing, damaged or unreadable."""
    with reading(path, "outbox") as db:
        items = [item_of(row) for row in db.execute("SELECT * FROM item ORDER BY id")]
        sums = db.execute("SELECT chain_id, contract, peer_id, millionths FROM owed WHERE millionths != 0").fetchall()
        note = db.execute("SELECT value FROM note WHERE key = ?", (TROUBLE,)).fetchone()
    owed = [
        (LedgerScope(chain_id=chain_id, contract=contract, peer_id=peer_id), millionths / MILLIONTHS)
        for chain_id, contract, peer_id, millionths in sums
    ]
    return Pending(items=items, owed=owed, trouble="" if note is None else str(note[0]))
