"""The file of one peer's bets and claims at one market, written before anything is sent.

The file and a copy of it are replaced as a whole, one after the other: if a power cut damages one, the other has the
last state or the one before. A change is on disk when its method returns; if it raises, nothing must be sent.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from codezero.errors import LedgerError
from codezero.ledger.items import LedgerScope
from codezero.ledger.transactions import Transaction

KEPT_BETS = 500
"""The number of newest bets that are kept, and of newest claims; older ones are kept only while they are open."""

_TIMES = ("trouble_since_s", "trouble_seen_s")

logger = logging.getLogger(__name__)
_Amount = Annotated[str, Meta(pattern="^[0-9]{1,78}$")]
"""Token units as decimal digits, since a JSON number does not hold them exactly."""


class BookError(LedgerError):
    """Raised if the book cannot be read or written; its content is unchanged."""


class BetState(str, Enum):
    OPEN = "open"
    """The bet is to be sent, or was sent and is not confirmed."""
    PLACED = "placed"
    """The contract has the bet."""
    REFUSED = "refused"
    """The contract refuses the bet."""
    MISSED = "missed"
    """The round was over before the bet was sent or mined."""
    FAILED = "failed"
    """The bet's transactions were mined, and failed."""
    UNKNOWN = "unknown"
    """The contract may have the bet."""


class ClaimState(str, Enum):
    WAITING = "waiting"
    CLAIMED = "claimed"
    NOTHING = "nothing"
    """The bet was lost."""
    GIVEN_UP = "given up"


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `Transaction` as the file has it."""

    hash: str
    raw: str
    nonce: int
    max_fee_wei: int
    tip_wei: int
    signed_at_s: float
    sent_at_s: float

    @classmethod
    def of(cls, transaction: Transaction) -> Sent:
        return cls(
            hash=transaction.hash,
            raw=transaction.raw.hex(),
            nonce=transaction.nonce,
            max_fee_wei=transaction.max_fee_wei,
            tip_wei=transaction.tip_wei,
            signed_at_s=transaction.signed_at_s,
            sent_at_s=transaction.sent_at_s,
        )

    def transaction(self) -> Transaction:
        return Transaction(
            hash=self.hash,
            raw=bytes.fromhex(self.raw),
            nonce=self.nonce,
            max_fee_wei=self.max_fee_wei,
            tip_wei=self.tip_wei,
            signed_at_s=self.signed_at_s,
            sent_at_s=self.sent_at_s,
        )


class Bet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A bet; there is at most one per clue."""

    game: int
    clue: int
    choice: int
    text: str
    """The text of the choice, neutralised."""
    amount: _Amount
    tokens_before: _Amount
    """The peer's tokens on the choice before the bet; if it holds more, the bet has arrived."""
    made_at_s: float
    state: BetState = BetState.OPEN
    sent: tuple[Sent, ...] = ()
    note: str = ""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The claim for a game that was, or may have been, bet on."""

    game: int
    state: ClaimState = ClaimState.WAITING
    tries: int = 0
    due_at_s: float = 0.0
    sent: tuple[Sent, ...] = ()
    note: str = ""


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chain_id: int
    contract: str
    peer_id: str
    bets: tuple[Bet, ...] = ()
    claims: tuple[Claim, ...] = ()
    trouble: str = ""
    trouble_since_s: float | None = None
    trouble_seen_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSummary:
    """The counts and the trouble of a book."""

    scope: LedgerScope
    num_bets: int
    """The number of bets that the contract is known to have."""
    num_open: int
    num_unclaimed: int
    trouble: str
    """The problem that keeps the node from playing; empty if none. Partly untrusted text."""
    trouble_since_s: float | None
    """The Unix time at which the trouble began; None without trouble, or if not known."""
    trouble_seen_s: float | None
    """The Unix time at which the node last noted the trouble; a node that has ended notes nothing more."""


class Book:
    """The bets and claims of one scope, in a file. Not safe for use by several threads."""

    def __init__(self, folder: Path, scope: LedgerScope) -> None:
        """Reads the file. Damaged files are renamed, with a warning."""
        name = hashlib.sha256(f"{scope.chain_id} {scope.contract} {scope.peer_id}".encode()).hexdigest()[:12]
        self.path = folder / f"market-{name}.json"
        self._empty = _Content(scope.chain_id, scope.contract, scope.peer_id)
        self._content = self._load()

    @property
    def copy_path(self) -> Path:
        return self.path.with_suffix(".json.bak")

    @property
    def bets(self) -> Sequence[Bet]:
        """The bets, oldest first."""
        return self._content.bets

    @property
    def unclaimed(self) -> Sequence[Claim]:
        return [claim for claim in self._content.claims if claim.state is ClaimState.WAITING]

    def last_bet(self, game: int) -> Bet | None:
        """Returns the bet on the latest clue of a game that was bet on, or None."""
        return max((bet for bet in self.bets if bet.game == game), key=lambda bet: bet.clue, default=None)

    def put_bet(self, bet: Bet) -> Bet:
        """Adds a bet, or replaces the one on the same clue. If it may have been placed, adds a claim for its game.
        Raises BookError."""
        bets = [bet if (bet.game, bet.clue) == (old.game, old.clue) else old for old in self.bets]
        if bet not in bets:
            bets.append(bet)
        claims = list(self._content.claims)
        if bet.state in (BetState.PLACED, BetState.UNKNOWN) and bet.game not in {claim.game for claim in claims}:
            claims.append(Claim(game=bet.game))
        self._write(bets, claims)
        return bet

    def put_claim(self, claim: Claim) -> Claim:
        """Replaces the claim for the same game. Raises BookError."""
        self._write(self.bets, [claim if claim.game == old.game else old for old in self._content.claims])
        return claim

    def note_trouble(self, trouble: str) -> None:
        """Notes the current trouble, empty for none, for readers of the book while the node plays. Raises BookError."""
        old, now_s = self._content, time.time()
        if not trouble and not old.trouble:
            return
        since_s = old.trouble_since_s if trouble == old.trouble else now_s
        times = {"trouble_since_s": since_s, "trouble_seen_s": now_s} if trouble else dict.fromkeys(_TIMES)
        self._keep(msgspec.structs.replace(old, trouble=trouble, **times))

    def _write(self, bets: Sequence[Bet], claims: Sequence[Claim]) -> None:
        old_bets, old_claims = bets[:-KEPT_BETS], claims[:-KEPT_BETS]
        content = msgspec.structs.replace(
            self._content,
            bets=(*(bet for bet in old_bets if bet.state is BetState.OPEN), *bets[-KEPT_BETS:]),
            claims=(*(claim for claim in old_claims if claim.state is ClaimState.WAITING), *claims[-KEPT_BETS:]),
        )
        self._keep(content)

    def _keep(self, content: _Content) -> None:
        data = msgspec.json.format(msgspec.json.encode(content), indent=1)
        try:
            _replace(self.path, data)
            _replace(self.copy_path, data)
        except OSError as error:
            raise BookError(
                f"cannot write the market's book {self.path}: {error.strerror}; nothing is bet or claimed until there "
                "is free space and the folder can be written"
            ) from error
        self._content = content

    def _load(self) -> _Content:
        found = [path for path in (self.path, self.copy_path) if path.exists()]
        for path in found:
            try:
                content = msgspec.json.decode(path.read_bytes(), type=_Content)
                for sent in (*(bet.sent for bet in content.bets), *(claim.sent for claim in content.claims)):
                    [one.transaction() for one in sent]  # raises where a hash or its bytes are damaged
            except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
                logger.warning("the market's book %s is damaged: %s. Nothing has to be done yet", path.name, error)
                continue
            if (content.chain_id, content.contract, content.peer_id) == _scope(self._empty):
                return content
            logger.warning("the market's book %s is another peer's or market's. Nothing has to be done yet", path.name)
        for path in found:
            aside = path.with_name(path.name + ".damaged")
            logger.warning(
                "the market's book %s is put aside as %s, and a new one begun: keep it, since its bets are no longer "
                "followed here",
                path.name,
                aside.name,
            )
            try:
                os.replace(path, aside)
            except OSError as error:
                logger.warning(
                    "%s could not be put aside (%s): it will be overwritten; stop the node and copy it, if you want it",
                    path.name,
                    error.strerror,
                )
        return self._empty


def read_summaries(folder: Path) -> list[BookSummary]:
    """Reads all books in a node's state folder, also while it plays. Raises BookError: one cannot be read."""
    found = []
    for path in sorted(folder.glob("market-*.json")):
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_Content)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise BookError(
                f"cannot read the market's book {path}: {error}; the node mends it from its copy when it starts"
            ) from error
        states = [bet.state for bet in content.bets]
        found.append(
            BookSummary(
                scope=LedgerScope(chain_id=content.chain_id, contract=content.contract, peer_id=content.peer_id),
                num_bets=states.count(BetState.PLACED),
                num_open=states.count(BetState.OPEN),
                num_unclaimed=sum(claim.state is ClaimState.WAITING for claim in content.claims),
                trouble=content.trouble,
                trouble_since_s=content.trouble_since_s,
                trouble_seen_s=content.trouble_seen_s,
            )
        )
    return found


def _scope(content: _Content) -> tuple[int, str, str]:
    return content.chain_id, content.contract, content.peer_id


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
