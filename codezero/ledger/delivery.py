"""Submits an outbox's items to a contract: it looks an item up on the chain, sends it if it is missing, and looks
again. `submissions` has the coordinator's items, `services.market.bets` the market's.

An item is done when the contract has it, not when something was sent. The next step follows only from what the chain
says and what was signed, so a kill, a broken connection or another node's transaction in between does no harm.
"""

from __future__ import annotations

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

from codezero.errors import LedgerError
from codezero.ledger.coordinator import Standing
from codezero.ledger.faults import AlreadyKnown, FeesTooHigh, NonceRace, OutboxError, ProxyFault, Reverted
from codezero.ledger.items import OPEN, ItemState, Kind, LedgerItem, in_words
from codezero.ledger.outbox import Outbox
from codezero.ledger.transactions import Journal, Transaction

LOOK_AGAIN_S = 2.0
"""Seconds from sending to the next look."""
UNSEEN_S = 60.0
"""Seconds before a service that was asked to send is asked again, since it may be slow."""
RESEND_AFTER_S = 60.0
"""Seconds without a receipt after which the same bytes are sent again, in case the RPC dropped them."""
REPLACE_AFTER_S = 600.0
"""Seconds without a receipt after which a transaction with the same nonce and higher fees replaces it, or one with a
lower nonce where the chain has lost what came before it. Where the fees are above the account's limit, the same bytes
are sent again."""
HOLD_S = 60.0
"""Seconds between two looks at an item that the chain does not take yet: its round has not come, or its game runs."""
MAX_BACKOFF_S, MAX_REVERTED_BACKOFF_S = 600.0, 3600.0
"""The longest waits in seconds between two tries; the latter after transactions that failed when mined, which cost."""
FIRST_CLAIM_WAIT_S, MAX_CLAIM_WAIT_S = 60.0, 6 * 3600.0
"""The shortest and the longest wait in seconds between two tries of a claim; refused ones are mostly of lost bets."""
_HASHES = 16
"""The number of an item's transactions that are looked up, the newest ones."""

logger = logging.getLogger(__name__)


class Step(Enum):
    """The next step for an item."""

    DONE = "done"
    WAIT = "wait"
    SEND = "send"
    RESEND = "resend"
    REPLACE = "replace"


class RevertMeaning(Enum):
    """The meaning of a revert for an item."""

    DONE = "the chain had it already"
    UNREGISTERED = "the peer id is not this account's"
    DROP = "the chain will never take it"
    RETRY = "unknown"


def next_step(standing: Standing, sent: Sequence[Transaction], now_s: float) -> Step:
    """Returns the next step, from the chain's state and the transactions that were signed before."""
    if standing.recorded or any(standing.receipts.values()):
        return Step.DONE
    if not sent:
        return Step.SEND
    last = sent[-1]
    since_signed_s, since_sent_s = now_s - last.signed_at_s, now_s - last.sent_at_s
    if last.hash in standing.receipts:  # it was mined and failed
        waited = not 0 <= since_signed_s < backoff_s(len(sent), MAX_REVERTED_BACKOFF_S)
        return Step.SEND if waited else Step.WAIT
    if standing.nonce > last.nonce:  # another transaction has its nonce, so it can never be mined
        return Step.SEND
    if 0 <= since_sent_s < RESEND_AFTER_S:  # below 0: the clock was set back
        return Step.WAIT
    return Step.RESEND if abs(since_signed_s) < REPLACE_AFTER_S else Step.REPLACE


def backoff_s(tries: int, most_s: float = MAX_BACKOFF_S, first_s: float = 5.0) -> float:
    """Returns the seconds before the next try: `first_s`, twice that, four times that ... up to `most_s`."""
    return min(first_s * 2.0 ** min(tries, 20), most_s)


class Delivery(ABC):
    """Submits the items of one scope."""

    def __init__(self, outbox: Outbox, broadcast: Callable[[bytes], None]) -> None:
        """`broadcast` sends a signed transaction, as `Rpc.broadcast`."""
        self._outbox, self._broadcast = outbox, broadcast

    @abstractmethod
    def _look(self, item: LedgerItem, hashes: Sequence[str]) -> Standing:
        """Looks up an item and its transactions. Raises as `Rpc.look`."""

    @abstractmethod
    def _write(self, item: LedgerItem, journal: Journal) -> str:
        """Sends an item; returns and raises as `Sender.send`."""

    @abstractmethod
    def _meaning(self, item: LedgerItem, name: str) -> RevertMeaning:
        """Returns what the contract's error of this name means for an item."""

    def _state_without_sending(
        self, item: LedgerItem, standing: Standing, sent: Sequence[Transaction]
    ) -> tuple[ItemState, str] | None:
        """Returns the state that an item takes without being sent, and the reason; in an open state the item is looked
        up again later, in any other it ends. None if it is sent when it is due."""
        return None

    def _due(self) -> list[LedgerItem]:
        """Returns the items to look up now."""
        return [item for item in self._outbox.open_items() if item.state is ItemState.HANDED_OVER or _is_due(item)]

    def _try(self, item: LedgerItem) -> bool:
        """Does one step for an item. Returns True if it should be looked up again soon.

        Raises RpcFault, WrongChain, NoContract, InsufficientFunds, FeesTooHigh, ProxyFault: nothing can be
        submitted for now; OutboxError. The item keeps the error as its note.
        """
        try:
            return self._step(item)
        except OutboxError:
            raise
        except ProxyFault as error:  # the app may still have sent it
            wait_s = _wait_s(item) if item.kind is Kind.CLAIM else UNSEEN_S
            self._outbox.postpone(item, time.time() + wait_s, str(error))
            raise
        except LedgerError as error:
            self._outbox.postpone(item, time.time(), str(error), tried=False)
            raise

    def _step(self, item: LedgerItem) -> bool:
        sent = self._outbox.sent(item)
        standing = self._look(item, [transaction.hash for transaction in sent[-_HASHES:]])
        step = next_step(standing, sent, time.time())
        if step is Step.DONE:
            by = next((hash_ for hash_, succeeded in standing.receipts.items() if succeeded), "")
            # Where a service signs, only the hash that it returned is known.
            self._end(item, ItemState.DONE, "", by or ("" if sent else item.reference))
            return item.kind is Kind.REGISTRATION
        unsent = self._state_without_sending(item, standing, sent)
        if unsent is not None:
            self._hold_or_end(item, *unsent)
            return unsent == (item.state, "") and _is_fresh(item, sent)
        if step is Step.RESEND:
            self._resend(sent[-1])
        elif step is not Step.WAIT and _is_due(item):
            if sent and standing.receipts.get(sent[-1].hash) is False:
                self._outbox.refused(item, f"transaction {sent[-1].hash} was mined and failed")
            return self._send(item, sent[-1] if step is Step.REPLACE else None)
        return _is_fresh(item, sent)

    def _hold_or_end(self, item: LedgerItem, state: ItemState, note: str) -> None:
        if state not in OPEN:
            self._end(item, state, note)
        elif note:
            self._outbox.postpone(item, time.time() + HOLD_S * random.uniform(0.75, 1.25), note, tried=False)

    def _send(self, item: LedgerItem, replaces: Transaction | None) -> bool:
        journal = Journal(
            store=partial(self._outbox.store, item),
            hand_over=lambda: self._outbox.hand_over(item, time.time() + UNSEEN_S),
            replaces=replaces,
        )
        try:
            reference = self._write(item, journal)
        except Reverted as error:
            self._refused(item, error)
            return False
        except NonceRace as error:
            self._postpone(item, str(error), unsent=False)
            return True
        except FeesTooHigh as error:
            if replaces is None:
                raise
            self._resend(replaces)  # it may be mined as it is, and no other item has to wait for it
            if item.note != str(error):
                logger.warning("%s: %s", in_words(item), error)
            self._outbox.postpone(item, time.time() + RESEND_AFTER_S, str(error), tried=False)
            return False
        sent = self._outbox.sent(item)
        if sent:
            self._outbox.taken(sent[-1])
        wait_s = LOOK_AGAIN_S if sent else UNSEEN_S
        self._outbox.postpone(item, time.time() + wait_s, "", reference=reference)
        return True

    def _resend(self, transaction: Transaction) -> None:
        try:
            self._broadcast(transaction.raw)
        except (AlreadyKnown, NonceRace) as error:  # the next look shows which one was mined
            logger.info("sent again, %s", error)
        self._outbox.taken(transaction)

    def _refused(self, item: LedgerItem, error: Reverted) -> None:
        meaning = self._meaning(item, error.name)
        if meaning is RevertMeaning.DONE:
            self._end(item, ItemState.DONE, f"{meaning.value} ({error.name})")
        elif meaning is RevertMeaning.DROP:
            self._end(item, ItemState.DROPPED, str(error))
        else:
            self._outbox.refused(item, str(error))
            self._postpone(item, str(error), unsent=True)

    def _end(self, item: LedgerItem, state: ItemState, note: str, reference: str = "") -> None:
        self._outbox.finish(item, state, note, reference)
        logger.info("%s: %s %s", in_words(item), state.value, note or reference)

    def _postpone(self, item: LedgerItem, note: str, *, unsent: bool) -> None:
        wait_s = _wait_s(item) * random.uniform(0.75, 1.25)
        self._outbox.postpone(item, time.time() + wait_s, note, unsent=unsent)


def _wait_s(item: LedgerItem) -> float:
    if item.kind is Kind.CLAIM:
        return backoff_s(item.tries, MAX_CLAIM_WAIT_S, FIRST_CLAIM_WAIT_S)
    return backoff_s(item.tries)


def _is_fresh(item: LedgerItem, sent: Sequence[Transaction]) -> bool:
    """Returns True if an item was signed, or handed over, within UNSEEN_S, so that the chain may soon have it."""
    since_s = sent[-1].signed_at_s if sent else item.due_at_s - UNSEEN_S
    return 0 <= time.time() - since_s < UNSEEN_S


def _is_due(item: LedgerItem) -> bool:
    now_s, most_s = time.time(), MAX_CLAIM_WAIT_S if item.kind is Kind.CLAIM else MAX_BACKOFF_S
    return not now_s < item.due_at_s < now_s + 2 * most_s  # a later time means that the clock was set back
