"""Plays the prediction market for a node, in a thread that never blocks or ends a round. The ledger's thread sends what
it bets, and claims."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.errors import CodezeroError, Stopping
from codezero.ledger.delivery import backoff_s
from codezero.ledger.faults import OutboxError, RpcFault
from codezero.prompts import market as prompt
from codezero.runtime.reminders import Reminders
from codezero.runtime.worker import Worker
from codezero.services.judge.client import Clue, JudgeService
from codezero.services.market.bets import BetDelivery, BetRecord
from codezero.services.market.betting import Betting
from codezero.services.market.book import Book
from codezero.services.market.contract import Market
from codezero.services.market.stakes import Stakes, most_likely

if TYPE_CHECKING:  # it imports torch
    from codezero.policy.query import QueryPolicy

POLL_S = 20.0
BUSY_POLL_S = 2.0
"""Seconds between two steps while a bet is not confirmed."""
MAX_POLL_S = 300.0
"""The longest wait in seconds while the judge service or the chain does not answer."""
STOP_S = 3.0
"""Longest wait in seconds for the end of the thread."""
RECORD = "prg_record.txt"

logger = logging.getLogger(__name__)


class Player:
    """The player of one peer at one market."""

    def __init__(
        self,
        judge: JudgeService,
        market: Market,
        policy: QueryPolicy,
        book: Book,
        stakes: Stakes,
        wake: Callable[[], None],
        *,
        peer_id: str,
        log_dir: Path,
    ) -> None:
        """`wake` is called when there is something new for `delivery` to send."""
        self._judge, self._policy, self._book, self._wake = judge, policy, book, wake
        self._betting = Betting(book, market, stakes)
        self.delivery = BetDelivery(book, market, BetRecord(log_dir / RECORD, peer_id))
        """Sends bets and claims, in another thread."""
        self._worker = Worker("market", lambda: None if self._worker.is_stopping else self.tick())
        self._chosen: tuple[Clue, int] | None = None
        self._failures = 0  # consecutive ones
        self._reminders = Reminders()
        self._noted: str | None = None
        """The problem that the book has; None before it was written in this run."""
        self.trouble = ""
        """The problem that keeps the node from playing; empty if none."""

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Stops the thread. The next start finds the outcome of a transaction under way."""
        self._worker.stop(STOP_S)

    def tick(self) -> float:
        """Reads judge service and contract and makes one step; returns the seconds until the next."""
        try:
            busy = self._play()
        except Stopping:
            return MAX_POLL_S
        except CodezeroError as error:
            self._failures += 1
            self._troubled(str(error), type(error).__name__)
            wait_s = backoff_s(self._failures - 1, MAX_POLL_S, POLL_S)
            asked_for_s = error.retry_after_s if isinstance(error, RpcFault) else None
            return max(wait_s * random.uniform(0.75, 1.25), asked_for_s or 0.0)
        except Exception as error:  # the thread's boundary: whatever breaks in here must not end the node's training
            logger.exception("the market's player failed")
            self._troubled(f"internal error in the market's player ({type(error).__name__}): please report it", "bug")
            return MAX_POLL_S
        self._failures, trouble = 0, self.delivery.trouble
        if trouble is None:
            self._note("")
        else:
            self._troubled(str(trouble), type(trouble).__name__)
        return BUSY_POLL_S if busy else POLL_S * random.uniform(0.7, 1.0)

    def _play(self) -> bool:
        """Makes one step; returns whether a bet is on its way."""
        if self._book.is_betting():
            return True
        clue = self._judge.current_clue()
        if clue is None or not self._betting.consider(clue, self._choose):
            return False
        self._wake()
        return True

    def _choose(self, clue: Clue) -> int:
        """Returns the choice that the policy finds most likely. The policy is asked once per clue, however often its
        bet is tried."""
        if self._chosen is None or self._chosen[0] != clue:
            completions = [choice + prompt.CLOSING for choice in clue.choices]
            chat = prompt.messages(clue.text, clue.choices)
            logprobs = self._policy.token_logprobs(chat, prompt.OPENING, completions)
            self._chosen = clue, most_likely(dict(zip(clue.choices, logprobs, strict=True)))
        return self._chosen[1]

    def _note(self, trouble: str, kind: str = "") -> None:
        changed, self.trouble = trouble != self._noted, trouble
        if trouble or changed:  # the same trouble again: its time is updated
            with contextlib.suppress(OutboxError):  # reported anyway where a bet or claim is to be written
                self._book.note_trouble(trouble, kind)
                self._noted = trouble

    def _troubled(self, text: str, kind: str) -> None:
        self._note(text, kind)
        if self._reminders.is_due(kind):
            logger.warning("%s", text)
