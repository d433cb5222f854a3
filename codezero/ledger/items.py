"""The records of the outbox, their tables, and their description in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from codezero.types import RoundId

SCHEMA = """
CREATE TABLE IF NOT EXISTS item (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    chain_id INTEGER NOT NULL,
    contract TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    round INTEGER NOT NULL,       -- 0 for a registration; the game of a bet and a claim
    stage INTEGER NOT NULL,       -- 0 for a registration, a vote and a claim; the clue of a bet
    reward INTEGER NOT NULL,      -- points
    winners TEXT NOT NULL,        -- JSON list of peer ids
    state TEXT NOT NULL,
    created_at_s REAL NOT NULL,   -- Unix time, as all below
    tries INTEGER NOT NULL,
    due_at_s REAL NOT NULL,
    note TEXT NOT NULL,           -- the last error, or why it is done or dropped
    reference TEXT NOT NULL,      -- hash of the last transaction, or, once it is done, of the one that did it
    UNIQUE (kind, chain_id, contract, peer_id, round, stage)
);
CREATE TABLE IF NOT EXISTS sent (
    item INTEGER NOT NULL REFERENCES item (id),
    hash TEXT NOT NULL UNIQUE,
    raw BLOB NOT NULL,
    nonce INTEGER NOT NULL,
    max_fee_wei INTEGER NOT NULL,
    tip_wei INTEGER NOT NULL,
    signed_at_s REAL NOT NULL,
    sent_at_s REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS credit (
    chain_id INTEGER NOT NULL,
    contract TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    round INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    millionths INTEGER NOT NULL,
    PRIMARY KEY (chain_id, contract, peer_id, round, stage)
);
CREATE TABLE IF NOT EXISTS owed (
    chain_id INTEGER NOT NULL,
    contract TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    millionths INTEGER NOT NULL,  -- credited, and in no item yet
    since_s REAL,                 -- of the first credit since the last fold, NULL without one
    round INTEGER NOT NULL,       -- of the last credit
    stage INTEGER NOT NULL,
    winners TEXT NOT NULL,
    PRIMARY KEY (chain_id, contract, peer_id)
);
CREATE TABLE IF NOT EXISTS note (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS verdict (
    item INTEGER NOT NULL REFERENCES item (id),
    accepted INTEGER NOT NULL,    -- 1: the chain has it; 0: the chain refused it, for good or for now
    at_s REAL NOT NULL,           -- of the last one
    reason TEXT NOT NULL,         -- of a refusal
    PRIMARY KEY (item, accepted)
);
"""


class Kind(str, Enum):
    """The kind of an item."""

    REGISTRATION = "registration"
    REWARD = "reward"
    VOTE = "vote"
    BET = "bet"
    """A bet at the prediction market; its round and stage are the number of the game and of the clue."""
    CLAIM = "claim"
    """The claim of a game's reward at the market; its round is the number of the game."""


SUBMISSIONS = (Kind.REGISTRATION, Kind.REWARD, Kind.VOTE)
"""The kinds of the coordinator's items; the others are the market's."""


class ItemState(str, Enum):
    """The state of an item."""

    WAITING = "waiting"
    """It will be sent when it is due."""
    SENT = "sent"
    """It is signed and stored, so it may have been sent and mined."""
    HANDED_OVER = "handed over"
    """A service was asked to sign and send it, so it may have been mined. The service is asked again when it is due."""
    DONE = "done"
    """The chain has it."""
    DROPPED = "dropped"
    """The chain will never take it."""
    UNKNOWN = "unknown"
    """The chain may have it; nothing more can be found out about it."""


OPEN = (ItemState.WAITING, ItemState.SENT, ItemState.HANDED_OVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerScope:
    """The peer and the contract that submissions are for."""

    chain_id: int
    contract: str
    """The contract's checksummed address."""
    peer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerItem:
    """One submission. The schema above describes the fields."""

    id: int
    kind: Kind
    scope: LedgerScope
    round_id: RoundId
    reward: int
    winners: tuple[str, ...]
    state: ItemState
    created_at_s: float
    tries: int
    due_at_s: float
    note: str
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """Rewards that are in no item yet."""

    points: float
    since_s: float | None


def item_of(row: Sequence[Any]) -> LedgerItem:
    """Returns the item in a row of the table `item`."""
    id_, kind, chain_id, contract, peer_id, number, stage, reward, winners, state, *rest = row
    created_at_s, tries, due_at_s, note, reference = rest
    return LedgerItem(
        id=id_,
        kind=Kind(kind),
        scope=LedgerScope(chain_id=chain_id, contract=contract, peer_id=peer_id),
        round_id=RoundId(number=number, stage=stage),
        reward=reward,
        winners=tuple(json.loads(winners)),
        state=ItemState(state),
        created_at_s=created_at_s,
        tries=tries,
        due_at_s=due_at_s,
        note=note,
        reference=reference,
    )


def in_words(item: LedgerItem) -> str:
    """Returns a description of the submission in words."""
    peer = item.scope.peer_id
    if item.kind is Kind.REGISTRATION:
        return f"registration of peer {peer}"
    if item.kind is Kind.REWARD:
        return f"reward {item.reward:+d} of peer {peer} in round {item.round_id.number} stage {item.round_id.stage}"
    if item.kind is Kind.BET:
        return f"bet on clue {item.round_id.stage} of game {item.round_id.number}"
    if item.kind is Kind.CLAIM:
        return f"claim for game {item.round_id.number}"
    return f"vote of peer {peer} for {', '.join(item.winners)} in round {item.round_id.number}"
