"""The reads and writes of the market's contract, as a protocol for both ways of signing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from codezero.ledger.transactions import Journal


class GameStatus(IntEnum):
    """The contract's numbers for a game's status. The public contract, whose source is not known, may have others."""

    NONE = 0
    OPEN = 1
    REVEALED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GameView:
    """A game's state in the contract, and the peer's balance."""

    status: int
    """A GameStatus, or another number."""
    round: int
    num_choices: int
    balance: int
    """The peer's bet tokens, in units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """The state of transactions on the chain."""

    receipts: Mapping[str, bool]
    """For each mined transaction, by its hash, whether it succeeded."""
    nonce: int
    """The number of the account's transactions that were mined."""


class MarketBackend(Protocol):
    """One peer at one market. Every method raises LedgerError, as one of the subclasses in `ledger.faults`."""

    signs: bool
    """Whether this process signs, so that every transaction is in the journal before it is sent. If another program
    signs, the write may have been made even after an error or a kill, and only the contract can tell."""

    def game(self, game: int) -> GameView: ...

    def tokens(self, game: int, num_choices: int) -> tuple[int, ...]:
        """Returns the peer's tokens on each choice, in units."""
        ...

    def mined(self, hashes: Sequence[str]) -> Mined:
        """Returns which transactions were mined; an empty record from a backend that does not sign."""
        ...

    def guess(self, game: int, clue: int, choice: int, amount: int, journal: Journal) -> str:
        """Bets `amount` units; returns a reference to the transaction."""
        ...

    def claim(self, game: int, journal: Journal) -> str:
        """Claims a game's reward like `guess`; a backend that does not sign returns when the contract has the claim."""
        ...

    def broadcast(self, raw: bytes) -> None:
        """Sends a transaction of the journal again by `Rpc.broadcast`. Only called for a backend that signs."""
        ...
