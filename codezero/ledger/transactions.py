"""A signed transaction, and the journal it must be in before it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Signed, perhaps sent, perhaps mined: only its hash tells."""

    hash: str
    """0x and 64 hex digits."""
    raw: bytes
    nonce: int
    max_fee_wei: int
    """A unit of gas, tip included."""
    tip_wei: int
    signed_at_s: float
    """Unix time."""
    sent_at_s: float
    """Unix time at which the RPC last took it; 0 where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Given to a writer with a call."""

    store: Callable[[Transaction], None]
    """Called after signing and before sending; what it raises keeps the transaction from being sent."""
    hand_over: Callable[[], None] = lambda: None
    """Called before another is asked to sign and send; what it raises keeps it from being asked."""
    replaces: Transaction | None = None
    """A transaction of the same call that the chain does not take up: the new one must exclude it."""
