"""Places bets in the contract, each exactly once: read the contract, store the bet, send it, read the contract again.

A bet counts as placed when the contract shows its tokens or its transaction succeeded, not when it was sent. It is sent
again only where that cannot place two: as the same bytes, or after the earlier transaction can never be mined.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as changed

from codezero.ledger.coordinator import Standing
from codezero.ledger.delivery import Step, next_step
from codezero.ledger.faults import AlreadyKnown, NonceRace, Reverted
from codezero.ledger.transactions import Journal, Transaction
from codezero.services.judge.client import MAX_CHOICES, Clue
from codezero.services.market.backend import GameStatus, GameView, MarketBackend
from codezero.services.market.book import Bet, BetState, Book, Sent
from codezero.services.market.stakes import Stakes, shown

MAX_FAILED = 3
"""The number of failed transactions after which a bet or claim is given up; each costs a fee."""
ABANDON_S = 24 * 3600.0
"""Seconds after which a bet of unknown fate is given up, so that it no longer delays later ones."""
LATE_S = 300.0
"""Seconds since its signature after which a bet whose round is over, and that may still be mined, is given up."""
LOOKED_FOR = 16
"""The number of a bet's or claim's newest transactions whose receipts are read."""

logger = logging.getLogger(__name__)
Choose = Callable[[Clue], int]


class Betting:
    """The bets of one peer. Every method raises LedgerError if it must be tried again later."""

    def __init__(self, book: Book, backend: MarketBackend, stakes: Stakes, placed: Callable[[Bet], None]) -> None:
        """`placed` is called with each bet that the contract has."""
        self._book, self._backend, self._stakes, self._placed = book, backend, stakes, placed
        self._told: tuple[int, int, str] | None = None

    def follow(self) -> bool:
        """Makes one step for the bet in flight; returns whether there still is one."""
        for bet in self._book.bets:
            if bet.state is BetState.OPEN:
                self._follow(bet)
        return any(bet.state is BetState.OPEN for bet in self._book.bets)

    def consider(self, clue: Clue, choose: Choose) -> bool:
        """Bets on a clue unless that was done; returns whether a bet is in flight now. `choose` may take long."""
        last = self._book.last_bet(clue.game)
        if last is not None and clue.clue <= last.clue:
            return False
        if not self._is_open(clue) or (last is None and self._was_forgotten(clue)):
            return False
        choice = choose(clue)
        view = self._is_open(clue)  # checked again, since choosing took a while
        if view is None:
            return False
        self._open(clue, choice, self._stakes.amount(view.balance, clue.rounds_remaining))
        return True

    def _open(self, clue: Clue, choice: int, amount: int) -> None:
        bet = self._book.put_bet(
            Bet(
                game=clue.game,
                clue=clue.clue,
                choice=choice,
                text=clue.choices[choice],
                amount=str(amount),
                tokens_before=str(self._tokens(clue.game, choice)),
                made_at_s=time.time(),
            )
        )
        self._send(bet)

    def _is_open(self, clue: Clue) -> GameView | None:
        """Returns the state of a clue's game if the contract, not only the judge service, has it open for a bet, else
        None."""
        view = self._backend.game(clue.game)
        why = ""
        if view.status != GameStatus.OPEN:
            why = f"the contract gives it status {view.status}, not {GameStatus.OPEN} (open)"
        elif view.round != clue.clue:
            why = f"the contract is at round {view.round}"
        elif view.num_choices != len(clue.choices):
            why = f"the judge names {len(clue.choices)} choices, the contract has {view.num_choices}"
        elif self._stakes.amount(view.balance, clue.rounds_remaining) == 0:
            why = f"nothing to bet of a balance of {shown(view.balance)}"
        if why:
            self._tell(clue, why)
            return None
        return view

    def _was_forgotten(self, clue: Clue) -> bool:
        """Returns whether the peer holds tokens of a game that the book does not know. Then the book was lost, perhaps
        after a bet on this very clue, so the bet is noted as unknown."""
        held = self._backend.tokens(clue.game, min(len(clue.choices), MAX_CHOICES))
        if not any(held):
            return False
        choice = held.index(max(held))
        logger.warning(
            "this peer has tokens of game %d, which its book of bets does not know: no bet on this clue. Nothing has "
            "to be done: the next clue is bet on",
            clue.game,
        )
        self._book.put_bet(
            Bet(
                game=clue.game,
                clue=clue.clue,
                choice=choice,
                text=clue.choices[choice],
                amount="0",
                tokens_before=str(held[choice]),
                made_at_s=time.time(),
                state=BetState.UNKNOWN,
                note="found on the chain",
            )
        )
        return True

    def _follow(self, bet: Bet) -> None:
        now_s = time.time()
        if not 0 <= now_s - bet.made_at_s < ABANDON_S:  # below 0 if the clock was set back
            self._finish(bet, BetState.UNKNOWN, "nothing could be learnt of it for a day")
            return
        view = self._backend.game(bet.game)
        possible = view.status == GameStatus.OPEN and view.round == bet.clue
        sent = [transaction.transaction() for transaction in bet.sent]
        mined = self._backend.mined([transaction.hash for transaction in sent[-LOOKED_FOR:]])
        standing = Standing(
            recorded=self._tokens(bet.game, bet.choice) > int(bet.tokens_before),
            owner=None,
            receipts=dict(mined.receipts),
            nonce=mined.nonce,
        )
        step = next_step(standing, sent, now_s)
        if step is Step.DONE:
            self._finish(bet, BetState.PLACED, "")
            self._placed(bet)
        elif not sent and not self._backend.signs:
            if not possible:
                self._finish(bet, BetState.UNKNOWN, "its round is over, and it is not known whether it was placed")
        elif not possible:
            self._over(bet, standing, sent)
        elif sum(not succeeded for succeeded in standing.receipts.values()) >= MAX_FAILED:
            self._finish(bet, BetState.FAILED, f"{MAX_FAILED} transactions failed")
        elif step is Step.RESEND:
            self._resend(bet)
        elif step is not Step.WAIT:
            self._send(bet, sent[-1] if step is Step.REPLACE else None)

    def _over(self, bet: Bet, standing: Standing, sent: Sequence[Transaction]) -> None:
        """Handles a bet whose round has passed: it is not sent again, and ends when it can no longer be mined."""
        if not sent:
            self._finish(bet, BetState.MISSED, "its round was over before it was sent")
        elif sent[-1].hash in standing.receipts:
            self._finish(bet, BetState.FAILED, "its transaction failed")
        elif standing.nonce > sent[-1].nonce:
            self._finish(bet, BetState.MISSED, "its round was over before it was mined")
        elif time.time() - sent[-1].signed_at_s > LATE_S:
            self._finish(bet, BetState.UNKNOWN, "its round is over, and it is not known whether it is ever mined")

    def _send(self, bet: Bet, replaces: Transaction | None = None) -> None:
        journal = Journal(store=partial(self._store, bet.game, bet.clue), replaces=replaces)
        try:
            reference = self._backend.guess(bet.game, bet.clue, bet.choice, int(bet.amount), journal)
        except Reverted as error:
            logger.warning(
                "no bet on clue %d of game %d: %s. Nothing has to be done: the next clue is tried",
                bet.clue,
                bet.game,
                error,
            )
            self._finish(self._current(bet), BetState.REFUSED, str(error))
            return
        except NonceRace as error:  # the stored transaction can never be mined, as the next step finds
            logger.info("bet on clue %d of game %d: %s", bet.clue, bet.game, error)
            return
        self._taken(self._current(bet), reference)

    def _resend(self, bet: Bet) -> None:
        try:
            self._backend.broadcast(bytes.fromhex(bet.sent[-1].raw))
        except (AlreadyKnown, NonceRace) as error:  # the next step finds whether it was mined
            logger.info("sent again, %s", error)
        self._taken(bet, "")

    def _store(self, game: int, clue: int, transaction: Transaction) -> None:
        bet = next(bet for bet in self._book.bets if (bet.game, bet.clue) == (game, clue))
        self._book.put_bet(changed(bet, sent=(*bet.sent, Sent.of(transaction))))

    def _taken(self, bet: Bet, reference: str) -> None:
        """Notes that the RPC accepted the last transaction."""
        note = f"sent as {reference}" if reference else bet.note
        if not bet.sent:
            self._book.put_bet(changed(bet, note=note))
            return
        last = Sent.of(replace(bet.sent[-1].transaction(), sent_at_s=time.time()))
        self._book.put_bet(changed(bet, sent=(*bet.sent[:-1], last), note=note))

    def _current(self, bet: Bet) -> Bet:
        """Returns the bet as it is stored now."""
        return next(found for found in self._book.bets if (found.game, found.clue) == (bet.game, bet.clue))

    def _tokens(self, game: int, choice: int) -> int:
        return self._backend.tokens(game, choice + 1)[choice]

    def _finish(self, bet: Bet, state: BetState, note: str) -> None:
        if state is not BetState.PLACED:
            logger.info("bet on clue %d of game %d: %s, %s", bet.clue, bet.game, state.value, note)
        self._book.put_bet(changed(bet, state=state, note=note))

    def _tell(self, clue: Clue, why: str) -> None:
        """Logs, once, why there is no bet."""
        if self._told != (clue.game, clue.clue, why):
            self._told = (clue.game, clue.clue, why)
            logger.info("no bet on clue %d of game %d: %s", clue.clue, clue.game, why)
