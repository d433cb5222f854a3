"""What the market's contract is asked and told, whoever signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from codezero.ledger.transactions import Journal


class GameStatus(IntEnum):
    """As the contract numbers them; the public one's source is not known, so others may come."""

    NONE = 0
    OPEN = 1
    REVEALED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GameView:
    """What the contract says of a game, and of the peer's purse."""

    status: int
    """A GameStatus, or a number that is none."""
    round: int
    num_choices: int
    balance: int
    """Units of the bet token that the peer holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """What became of transactions."""

    receipts: Mapping[str, bool]
    """Of those that were mined: whether they succeeded, by hash."""
    nonce: int
    """Transactions of the account that were mined."""


class MarketBackend(Protocol):
    """One peer at one market. Every method raises LedgerError, of the kinds that `ledger.faults` names."""

    signs: bool
    """Every transaction is in the journal before it leaves. Otherwise others sign: after an error, or when the process
    was ended meanwhile, the write may still have been made, and only the contract can tell."""

    def game(self, game: int) -> GameView: ...

    def tokens(self, game: int, num_choices: int) -> tuple[int, ...]:
        """The peer's tokens of each choice."""
        ...

    def mined(self, hashes: Sequence[str]) -> Mined:
        """Empty for a backend that does not sign."""
        ...

    def guess(self, game: int, clue: int, choice: int, amount: int, journal: Journal) -> str:
        """Bets `amount` units; returns a reference to what was sent."""
        ...

    def claim(self, game: int, journal: Journal) -> str:
        """As `guess`; a backend that does not sign returns once the contract has it."""
        ...

    def broadcast(self, raw: bytes) -> None:
        """Sends a transaction of the journal again, as `Rpc.broadcast`. Never asked of a backend that does not sign."""
        ...
