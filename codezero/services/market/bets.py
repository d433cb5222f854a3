"""Delivers bets and claims to the market's contract, each exactly once.

A bet counts as placed when the contract shows its tokens or its transaction succeeded, not when it was sent. One that
the sign-in app was asked for is never asked for again. A claim is simulated before it is sent, so one that the contract
refuses costs nothing; the contract takes it once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from codezero.errors import LedgerError
from codezero.ledger.coordinator import Standing
from codezero.ledger.delivery import Delivery, RevertMeaning
from codezero.ledger.faults import Reverted, RpcRefused
from codezero.ledger.items import ItemState, Kind, LedgerItem
from codezero.ledger.transactions import Journal, Transaction
from codezero.runtime import rotation
from codezero.runtime.console import printable
from codezero.runtime.files import append
from codezero.services.market.book import Bet, Book
from codezero.services.market.contract import GAME_OPEN, Market, MarketStanding
from codezero.services.market.stakes import shown

MAX_FAILED = 3
"""The number of failed transactions after which a bet or claim is given up; each costs a fee."""
ABANDON_S = 24 * 3600.0
"""Seconds after which a bet of unknown fate is given up, so that it no longer delays later ones."""
LATE_S = 300.0
"""Seconds since its signature after which a bet whose round is over, and that may still be mined, is given up."""
AT_ONCE = 3
"""The number of items handled in one step: a node may wait for hundreds of games that nobody ends."""
MAX_TRIES = 60
"""The number of tries, from when the answer is known, after which a claim is given up: about two weeks."""
_ENDS = {"already claimed": RevertMeaning.DONE, "nothing to claim": RevertMeaning.DROP}
"""The reasons of this repository's contract that end a claim; those of the public one are not known."""

logger = logging.getLogger(__name__)


class BetRecord:
    """Appends lines on bets that the contract has, and on rewards that were claimed, to one file. A line that cannot be
    written is lost, with a warning."""

    def __init__(self, path: Path, peer_id: str) -> None:
        self._path, self._peer_id = path, peer_id

    def placed(self, item: LedgerItem, bet: Bet) -> None:
        self._add(
            f"Game {item.round_id.number} Round {item.round_id.stage}: Peer {self._peer_id} placed bet of "
            f"{shown(bet.amount)} tokens on choice - {bet.text}"
        )

    def claimed(self, game: int) -> None:
        self._add(f"successfully claimed reward for previous game {game}")

    def _add(self, line: str) -> None:
        line = printable(line)
        logger.info("%s", line)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            rotation.rotate(self._path)
            append(self._path, f"{line}\n".encode())
        except OSError as error:
            logger.warning(
                "cannot write %s (%s): free space; the bet itself is not affected, and is in swarm.log too",
                self._path,
                error.strerror,
            )


class BetDelivery(Delivery):
    """Delivers the bets and claims of one peer."""

    def __init__(self, book: Book, market: Market, record: BetRecord) -> None:
        super().__init__(book, market.broadcast)
        self._book, self._market, self._record = book, market, record
        self.trouble: LedgerError | None = None
        """The error of the last step; None if it had none."""

    def deliver(self) -> bool:
        """Does one step for each of the items that are due. Returns True if an item should be looked up again soon."""
        busy, trouble = False, self.trouble
        try:
            waiting = sorted(self._due(), key=lambda item: item.due_at_s)
            bets = [item for item in waiting if item.kind is Kind.BET]
            claims = [item for item in waiting if item.kind is not Kind.BET]
            due = [*bets[: AT_ONCE - 1], *claims, *bets[AT_ONCE - 1 :]][:AT_ONCE]  # bets first, but for one claim
            trouble = None if due else trouble
            for item in due:
                try:
                    busy |= self._try(item)
                except (Reverted, RpcRefused) as error:  # of this item alone
                    trouble = error
                    if item.kind is Kind.BET and abs(time.time() - item.created_at_s) >= ABANDON_S:
                        self._end(item, ItemState.UNKNOWN, str(error))
        except LedgerError as error:
            trouble = error
        self.trouble = trouble
        return busy

    def _look(self, item: LedgerItem, hashes: Sequence[str]) -> MarketStanding:
        game = item.round_id.number
        if item.kind is Kind.CLAIM:
            taken = item.state is ItemState.HANDED_OVER and item.reference != ""
            return self._market.claimed(game, hashes, taken=taken)
        bet = self._book.bet(item)
        return self._market.bet(game, bet.choice, bet.held, hashes)

    def _write(self, item: LedgerItem, journal: Journal) -> str:
        game = item.round_id.number
        if item.kind is Kind.CLAIM:
            return self._market.claim(game, journal)
        bet = self._book.bet(item)
        return self._market.guess(game, item.round_id.stage, bet.choice, bet.amount, journal)

    def _state_without_sending(
        self, item: LedgerItem, standing: Standing, sent: Sequence[Transaction]
    ) -> tuple[ItemState, str] | None:
        assert isinstance(standing, MarketStanding)
        if sum(not succeeded for succeeded in standing.receipts.values()) >= MAX_FAILED:
            return ItemState.DROPPED, f"{MAX_FAILED} transactions failed"
        is_open = standing.status == GAME_OPEN
        if item.kind is Kind.CLAIM:
            return (item.state, "its answer is not known yet") if is_open and not sent else None
        now_s = time.time()
        if abs(now_s - item.created_at_s) >= ABANDON_S:  # below 0 if the clock was set back
            return ItemState.UNKNOWN, "nothing could be learnt of it for a day"
        if is_open and standing.round == item.round_id.stage:
            return (item.state, "") if item.state is ItemState.HANDED_OVER else None
        if item.state is ItemState.HANDED_OVER:
            return ItemState.UNKNOWN, "its round is over, and it is not known whether it was placed"
        if not sent:
            return ItemState.DROPPED, "its round was over before it was sent"
        if sent[-1].hash in standing.receipts:
            return ItemState.DROPPED, "its transaction failed"
        if standing.nonce > sent[-1].nonce:
            return ItemState.DROPPED, "its round was over before it was mined"
        if abs(now_s - sent[-1].signed_at_s) > LATE_S:
            return ItemState.UNKNOWN, "its round is over, and it is not known whether it is ever mined"
        return item.state, ""

    def _meaning(self, item: LedgerItem, name: str) -> RevertMeaning:
        if item.tries + 1 >= MAX_TRIES:
            return RevertMeaning.DROP
        return _ENDS.get(name, RevertMeaning.RETRY)

    def _refused(self, item: LedgerItem, error: Reverted) -> None:
        if item.kind is Kind.BET:
            clue, game = item.round_id.stage, item.round_id.number
            message = "no bet on clue %d of game %d: %s. Nothing has to be done: the next clue is tried"
            logger.warning(message, clue, game, error)
            self._end(item, ItemState.UNKNOWN if self._book.sent(item) else ItemState.DROPPED, str(error))
        else:
            super()._refused(item, error)

    def _end(self, item: LedgerItem, state: ItemState, note: str, reference: str = "") -> None:
        if item.kind is Kind.BET and state in (ItemState.DONE, ItemState.UNKNOWN):
            self._book.add_claim(item.round_id.number)  # first, so that a kill in between does not lose it
        super()._end(item, state, note, reference)
        if state is ItemState.DONE and item.kind is Kind.BET:
            self._record.placed(item, self._book.bet(item))
        elif state is ItemState.DONE:
            self._record.claimed(item.round_id.number)
