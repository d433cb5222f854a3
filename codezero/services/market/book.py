"""The items of the prediction market in the ledger's outbox: one bet a clue, and one claim a game that was bet on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from codezero.errors import LedgerError
from codezero.ledger.items import OPEN, ItemState, Kind, LedgerItem, LedgerScope, item_of
from codezero.ledger.location import OUTBOX
from codezero.ledger.outbox import TROUBLE, Outbox
from codezero.ledger.reading import trouble_in
from codezero.ledger.view import MarketView
from codezero.runtime.database import reading
from codezero.types import RoundId

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bet (
    item INTEGER PRIMARY KEY REFERENCES item (id),
    choice INTEGER NOT NULL,
    text TEXT NOT NULL,
    amount TEXT NOT NULL,         -- decimal digits, as the next: SQLite's integers are too small
    held TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bet:
    """A bet on one clue."""

    choice: int
    text: str
    """The text of the choice, neutralised."""
    amount: int
    """The amount in units, like `held`."""
    held: int
    """The peer's tokens on the choice before the bet; if it holds more, the bet has arrived."""


class Book(Outbox):
    """The bets and claims of one peer at one market. All methods raise OutboxError as `Outbox` does."""

    def __init__(self, path: Path, scope: LedgerScope) -> None:
        super().__init__(path, scope)
        with self._reading():
            self._db.executescript(_SCHEMA)
        self._notes = _notes(scope)

    def add_bet(self, game: int, clue: int, bet: Bet, state: ItemState = ItemState.WAITING) -> None:
        """Adds a bet, unless there is one on this clue."""
        with self._change():
            if self._add(Kind.BET, RoundId(number=game, stage=clue)):
                row = (bet.choice, bet.text, str(bet.amount), str(bet.held))
                self._run("INSERT INTO bet VALUES (last_insert_rowid(), ?, ?, ?, ?)", *row)
                self._run("UPDATE item SET state = ? WHERE id = last_insert_rowid()", state)

    def add_claim(self, game: int) -> None:
        """Adds the claim for a game, unless there is one."""
        with self._change():
            self._add(Kind.CLAIM, RoundId(number=game))

    def bet(self, item: LedgerItem) -> Bet:
        """Returns the bet of an item."""
        with self._reading():
            choice, text, amount, held = self._run(
                "SELECT choice, text, amount, held FROM bet WHERE item = ?", item.id
            ).fetchone()
        return Bet(choice=choice, text=text, amount=int(amount), held=int(held))

    def last_clue(self, game: int) -> int | None:
        """Returns the latest clue of a game that was bet on, or None."""
        query = "SELECT MAX(stage) FROM item WHERE (chain_id, contract, peer_id, kind, round) = (?, ?, ?, ?, ?)"
        with self._reading():
            (clue,) = self._run(query, *self._key, Kind.BET, game).fetchone()
        return None if clue is None else int(clue)

    def is_betting(self) -> bool:
        """Returns True if any bet is still open."""
        return any(item.kind is Kind.BET for item in self.open_items())


def read_markets(folder: Path) -> list[MarketView]:
    """Returns the markets in a state folder's outbox, while the node plays or after; none if it cannot be read, which
    `reading.read_view` reports."""
    try:
        with reading(folder / OUTBOX, "outbox") as db:
            rows = db.execute("SELECT * FROM item WHERE kind IN (?, ?)", (Kind.BET, Kind.CLAIM)).fetchall()
            notes = dict(db.execute("SELECT key, value FROM note").fetchall())
    except LedgerError:
        return []
    items = [item_of(row) for row in rows]
    told = [key.split(" ")[:3] for key in notes if key.endswith(f" {TROUBLE}")]
    scopes = [LedgerScope(chain_id=int(chain), contract=contract, peer_id=peer) for chain, contract, peer in told]
    return [_market(scope, items, notes) for scope in dict.fromkeys([*(item.scope for item in items), *scopes])]


def _market(scope: LedgerScope, items: Sequence[LedgerItem], notes: Mapping[str, str]) -> MarketView:
    states = [(item.kind, item.state) for item in items if item.scope == scope]
    return MarketView(
        **asdict(scope),
        num_bets=states.count((Kind.BET, ItemState.DONE)),
        num_open=sum(kind is Kind.BET and state in OPEN for kind, state in states),
        num_unclaimed=sum(kind is Kind.CLAIM and state in OPEN for kind, state in states),
        trouble=trouble_in(notes, _notes(scope)),
    )


def _notes(scope: LedgerScope) -> str:
    """Returns the prefix of the keys of a market's notes."""
    return f"{scope.chain_id} {scope.contract} {scope.peer_id} "
