"""Claims the rewards of games that were bet on, once their answers are known.

A claim is simulated before it is sent, so one that the contract refuses costs nothing. It is tried again after growing
waits.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as changed

from codezero.errors import LedgerError
from codezero.ledger.coordinator import Standing
from codezero.ledger.delivery import Step, next_step
from codezero.ledger.faults import AlreadyKnown, NonceRace, ProxyFault, Reverted
from codezero.ledger.transactions import Journal, Transaction
from codezero.services.market.backend import GameStatus, MarketBackend
from codezero.services.market.betting import LOOKED_FOR, MAX_FAILED
from codezero.services.market.book import Book, BookError, Claim, ClaimState, Sent

LOOK_S = 120.0
"""Seconds between two reads of a game whose answer is not known."""
FIRST_WAIT_S, MAX_WAIT_S = 60.0, 6 * 3600.0
"""The waits after the first refusal and at most, in seconds; each is twice the one before."""
AT_ONCE = 3
"""The number of claims handled in one step: a node may wait for hundreds of games that nobody ends."""
MAX_TRIES = 60
"""The number of refusals, after the answer was known, that end a claim: about two weeks."""
_ENDS = {"already claimed": ClaimState.CLAIMED, "nothing to claim": ClaimState.NOTHING}
"""The reasons of this repository's contract that end a claim; those of the public one are not known."""

logger = logging.getLogger(__name__)


class Claiming:
    """The claims of one peer."""

    def __init__(self, book: Book, backend: MarketBackend, claimed: Callable[[Claim], None]) -> None:
        """`claimed` is called with each claim that succeeded."""
        self._book, self._backend, self._claimed = book, backend, claimed

    def step(self) -> bool:
        """Makes one step for each claim that is due; returns whether another step should follow soon.

        Raises LedgerError: all must be tried again later, and the claim that failed is postponed."""
        busy = False
        now_s = time.time()
        # A claim that is due later than any wait lasts is due now: the clock was set back.
        due = [claim for claim in self._book.unclaimed if not now_s < claim.due_at_s < now_s + 2 * MAX_WAIT_S]
        for claim in sorted(due, key=lambda claim: claim.due_at_s)[:AT_ONCE]:
            try:
                busy |= self._step(claim)
            except BookError:
                raise
            except ProxyFault as error:  # the app may refuse this claim alone, which must not hold up bets
                self._refused(self._current(claim), error)
                raise
            except LedgerError as error:
                self._postpone(self._current(claim), str(error), wait_s=LOOK_S)
                raise
        return busy

    def _step(self, claim: Claim) -> bool:
        sent = [transaction.transaction() for transaction in claim.sent]
        step = Step.SEND
        if sent:
            mined = self._backend.mined([transaction.hash for transaction in sent[-LOOKED_FOR:]])
            step = next_step(
                Standing(recorded=False, owner=None, receipts=dict(mined.receipts), nonce=mined.nonce),
                sent,
                time.time(),
            )
            if step is not Step.DONE and sum(not done for done in mined.receipts.values()) >= MAX_FAILED:
                self._finish(claim, ClaimState.GIVEN_UP, f"{MAX_FAILED} transactions failed")
                return False
        if step is Step.DONE:
            self._finish(claim, ClaimState.CLAIMED, "")
        elif step is Step.RESEND:
            self._resend(claim)
            return True
        elif step is Step.WAIT:
            return True
        elif self._backend.game(claim.game).status == GameStatus.OPEN:
            self._postpone(claim, "its answer is not known yet", wait_s=LOOK_S)
        else:
            return self._send(claim, sent[-1] if step is Step.REPLACE else None)
        return False

    def _send(self, claim: Claim, replaces: Transaction | None) -> bool:
        try:
            reference = self._backend.claim(
                claim.game, Journal(store=partial(self._store, claim.game), replaces=replaces)
            )
        except Reverted as error:
            self._refused(self._current(claim), error)
            return False
        except NonceRace as error:  # the stored transaction can never be mined, as the next step finds
            logger.info("claim for game %d: %s", claim.game, error)
            return True
        claim = self._current(claim)
        if not claim.sent:  # the app signed, and the contract has the claim
            self._finish(claim, ClaimState.CLAIMED, f"sent as {reference}")
            return False
        self._taken(claim)
        return True

    def _refused(self, claim: Claim, error: Reverted | ProxyFault) -> None:
        if isinstance(error, Reverted) and error.name in _ENDS:
            self._finish(claim, _ENDS[error.name], str(error))
        elif claim.tries + 1 >= MAX_TRIES:
            self._finish(claim, ClaimState.GIVEN_UP, str(error))
        else:
            wait_s = min(FIRST_WAIT_S * 2.0 ** min(claim.tries, 20), MAX_WAIT_S)
            self._postpone(changed(claim, tries=claim.tries + 1), str(error), wait_s=wait_s)

    def _resend(self, claim: Claim) -> None:
        try:
            self._backend.broadcast(bytes.fromhex(claim.sent[-1].raw))
        except (AlreadyKnown, NonceRace) as error:  # the next step finds whether it was mined
            logger.info("sent again, %s", error)
        self._taken(claim)

    def _store(self, game: int, transaction: Transaction) -> None:
        claim = next(claim for claim in self._book.unclaimed if claim.game == game)
        self._book.put_claim(changed(claim, sent=(*claim.sent, Sent.of(transaction))))

    def _taken(self, claim: Claim) -> None:
        last = Sent.of(replace(claim.sent[-1].transaction(), sent_at_s=time.time()))
        self._book.put_claim(changed(claim, sent=(*claim.sent[:-1], last)))

    def _current(self, claim: Claim) -> Claim:
        """Returns the claim as it is stored now."""
        return next((found for found in self._book.unclaimed if found.game == claim.game), claim)

    def _postpone(self, claim: Claim, note: str, *, wait_s: float) -> None:
        due_at_s = time.time() + wait_s * random.uniform(0.75, 1.25)
        self._book.put_claim(changed(claim, due_at_s=due_at_s, note=note))

    def _finish(self, claim: Claim, state: ClaimState, note: str) -> None:
        logger.info("claim for game %d: %s %s", claim.game, state.value, note)
        self._book.put_claim(changed(claim, state=state, note=note))
        if state is ClaimState.CLAIMED:
            self._claimed(claim)
