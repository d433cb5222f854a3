"""A signed transaction, and the journal in which it is stored before it is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A signed transaction. Only the chain, asked by its hash, knows whether it was sent and mined."""

    hash: str
    """0x and 64 hex digits."""
    raw: bytes
    nonce: int
    max_fee_wei: int
    """The most to pay per unit of gas, tip included."""
    tip_wei: int
    signed_at_s: float
    """The Unix time of signing."""
    sent_at_s: float
    """The Unix time at which the RPC last took it; 0 if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The callbacks by which a writer notes on disk what it is about to send."""

    store: Callable[[Transaction], None]
    """Called after signing and before sending; if it raises, nothing is sent."""
    hand_over: Callable[[], None] = lambda: None
    """Called before a service is asked to sign and send; if it raises, the service is not asked."""
    replaces: Transaction | None = None
    """An earlier transaction of the same call that is not mined. The new one takes its nonce, so only one can be,
    unless the chain has lost an earlier nonce."""
