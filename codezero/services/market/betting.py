"""Decides on bets: reads the contract, has the policy choose, and puts the bet into the book, from which it is sent."""

from __future__ import annotations

import logging
from collections.abc import Callable

from codezero.ledger.items import ItemState
from codezero.services.judge.client import Clue
from codezero.services.market.book import Bet, Book
from codezero.services.market.contract import GAME_OPEN, GameView, Market
from codezero.services.market.stakes import Stakes, shown

logger = logging.getLogger(__name__)
Choose = Callable[[Clue], int]


class Betting:
    """The bets of one peer. Every method raises LedgerError if it must be tried again later."""

    def __init__(self, book: Book, market: Market, stakes: Stakes) -> None:
        self._book, self._market, self._stakes = book, market, stakes
        self._told: tuple[int, int, str] | None = None

    def consider(self, clue: Clue, choose: Choose) -> bool:
        """Adds a bet on a clue to the book unless it has one; returns True if it added one. `choose` may take long."""
        last = self._book.last_clue(clue.game)
        if last is not None and clue.clue <= last:
            return False
        if not self._open_game(clue) or (last is None and self._was_forgotten(clue)):
            return False
        choice = choose(clue)
        view = self._open_game(clue)  # checked again, since choosing took a while
        if view is None:
            return False
        self._book.add_bet(
            clue.game,
            clue.clue,
            Bet(
                choice=choice,
                text=clue.choices[choice],
                amount=self._stakes.amount(view.balance, clue.rounds_remaining),
                held=self._market.tokens(clue.game, [choice])[0],
            ),
        )
        return True

    def _open_game(self, clue: Clue) -> GameView | None:
        """Returns the state of a clue's game if the contract, and not only the judge service, takes bets on it; else
        None."""
        view = self._market.game(clue.game)
        why = ""
        if view.status != GAME_OPEN:
            why = f"the contract gives it status {view.status}, not {GAME_OPEN} (open)"
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
        held = self._market.tokens(clue.game, range(len(clue.choices)))
        if not any(held):
            return False
        choice = held.index(max(held))
        logger.warning(
            "this peer has tokens of game %d, which its book of bets does not know: no bet on this clue. Nothing has "
            "to be done: the next clue is bet on",
            clue.game,
        )
        bet = Bet(choice=choice, text=clue.choices[choice], amount=0, held=held[choice])
        self._book.add_claim(clue.game)
        self._book.add_bet(clue.game, clue.clue, bet, ItemState.UNKNOWN)
        return True

    def _tell(self, clue: Clue, why: str) -> None:
        """Logs, once, why there is no bet."""
        if self._told != (clue.game, clue.clue, why):
            self._told = (clue.game, clue.clue, why)
            logger.info("no bet on clue %d of game %d: %s", clue.clue, clue.game, why)
