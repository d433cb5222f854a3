"""Submits the outbox's items to the chain: it looks an item up on the chain, sends it if it is missing, and looks
again.

An item is done when the contract has it, not when something was sent. The next step follows only from what the chain
says and what was signed, so a kill, a broken connection or another node's transaction in between does no harm.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Protocol

from codezero.errors import LedgerError
from codezero.ledger.coordinator import ChainView, CoordinatorWriter, Standing
from codezero.ledger.faults import AlreadyKnown, NonceRace, OutboxError, PeerTaken, ProxyFault, Reverted
from codezero.ledger.items import ItemState, Kind, LedgerItem
from codezero.ledger.outbox import Outbox
from codezero.ledger.transactions import Journal, Transaction
from codezero.types import RoundId

LOOK_AGAIN_S = 2.0
"""Seconds from sending to the next look."""
UNSEEN_S = 60.0
"""Seconds before a service that was asked to send is asked again, since it may be slow."""
RESEND_AFTER_S = 60.0
"""Seconds without a receipt after which the same bytes are sent again, in case the RPC dropped them."""
REPLACE_AFTER_S = 600.0
"""Seconds without a receipt after which a transaction with the same nonce and higher fees replaces it."""
HOLD_S = 60.0
"""Seconds between two checks of an item whose round the chain has not reached."""
MAX_BACKOFF_S, MAX_REVERTED_BACKOFF_S = 600.0, 3600.0
"""The longest waits in seconds between two tries; the latter after transactions that failed when mined, which cost."""
_HASHES = 16
"""How many of an item's transactions are looked up, the newest ones."""

logger = logging.getLogger(__name__)


class Reads(Protocol):
    """The part of `Coordinator` that delivery uses."""

    def registration(self, peer_id: str, account: str, hashes: Sequence[str]) -> Standing: ...

    def reward(self, round_id: RoundId, peer_id: str, account: str, hashes: Sequence[str]) -> Standing: ...

    def vote(self, round_number: int, peer_id: str, account: str, hashes: Sequence[str]) -> Standing: ...

    def broadcast(self, raw: bytes) -> None: ...


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
    REGISTERED = "the peer id has an owner"
    HOLD = "the chain is not there yet"
    UNREGISTERED = "the peer id is not this account's"
    DROP = "the chain will never take it"
    RETRY = "unknown"


_REVERTS = {
    "RewardAlreadySubmitted": RevertMeaning.DONE,
    "WinnerAlreadyVoted": RevertMeaning.DONE,
    "PeerIdAlreadyRegistered": RevertMeaning.REGISTERED,
    "InvalidRoundNumber": RevertMeaning.HOLD,
    "InvalidStageNumber": RevertMeaning.HOLD,
    "InvalidVoterPeerId": RevertMeaning.UNREGISTERED,
    "InvalidVote": RevertMeaning.DROP,
}


class SubmissionsHalted(LedgerError):
    """The contract does not take this peer id from this account, and registering it did not help."""


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
    return Step.RESEND if since_signed_s < REPLACE_AFTER_S else Step.REPLACE


def refused(name: str) -> RevertMeaning:
    """Returns the meaning of the contract's error of a name."""
    return _REVERTS.get(name, RevertMeaning.RETRY)


def backoff_s(tries: int, most_s: float = MAX_BACKOFF_S) -> float:
    """Returns the seconds before the next try: 5, 10, 20 ... up to `most_s`."""
    return float(min(5.0 * 2 ** min(tries, 20), most_s))


class Delivery:
    """Submits one peer's items through one writer."""

    def __init__(self, outbox: Outbox, reads: Reads, writer: CoordinatorWriter, peer_id: str) -> None:
        self._outbox, self._reads, self._writer, self._peer_id = outbox, reads, writer, peer_id
        self._registered_for: set[int] = set()
        self.halted = ""
        """Why nothing more is submitted until the node is started again; empty if that is not so."""

    def deliver(self, view: ChainView) -> bool:
        """Does one step for each item that is due. Returns True if an item should be looked up again soon.

        Raises PeerTaken; RpcFault, WrongChain, NoContract, InsufficientFunds, FeesTooHigh, ProxyFault: nothing can be
        submitted for now; OutboxError. The item keeps the error as its note.
        """
        busy = False
        if self.halted:
            return False
        for item in self._outbox.open_items():
            if item.state is not ItemState.HANDED_OVER and not _is_due(item):
                continue
            if item.kind is not Kind.REGISTRATION and view.owner != self._writer.address:
                continue
            if item.kind is not Kind.REGISTRATION and item.round_id.number > view.round_id.number:
                self._hold(item, view.round_id)
                continue
            busy |= self._noted(item)
        return busy

    def _noted(self, item: LedgerItem) -> bool:
        try:
            return self._step(item)
        except SubmissionsHalted as error:
            self.halted = str(error)
            logger.error("%s", error)
            self._outbox.postpone(item, time.time() + MAX_BACKOFF_S, self.halted, unsent=True)
            return False
        except OutboxError:
            raise
        except ProxyFault as error:  # the app may still have sent it
            self._outbox.postpone(item, time.time() + UNSEEN_S, str(error))
            raise
        except LedgerError as error:
            self._outbox.postpone(item, time.time(), str(error))
            raise

    def _step(self, item: LedgerItem) -> bool:
        sent = self._outbox.sent(item)
        standing = self._look(item, [transaction.hash for transaction in sent[-_HASHES:]])
        step = next_step(standing, sent, time.time())
        if step is Step.DONE:
            by = next((hash_ for hash_, succeeded in standing.receipts.items() if succeeded), "")
            # Where a service signs, only the hash that it returned is known.
            self._finish(item, standing, by or ("" if sent else item.reference))
            return item.kind is Kind.REGISTRATION
        if step is Step.RESEND:
            self._resend(sent[-1])
        elif step is not Step.WAIT and _is_due(item):
            if sent and standing.receipts.get(sent[-1].hash) is False:
                self._outbox.refused(item, f"transaction {sent[-1].hash} was mined and failed")
            return self._send(item, standing, sent[-1] if step is Step.REPLACE else None)
        return True

    def _look(self, item: LedgerItem, hashes: Sequence[str]) -> Standing:
        account = self._writer.address
        if item.kind is Kind.REGISTRATION:
            return self._reads.registration(self._peer_id, account, hashes)
        if item.kind is Kind.REWARD:
            return self._reads.reward(item.round_id, self._peer_id, account, hashes)
        return self._reads.vote(item.round_id.number, self._peer_id, account, hashes)

    def _send(self, item: LedgerItem, standing: Standing, replaces: Transaction | None) -> bool:
        journal = Journal(
            store=partial(self._outbox.store, item),
            hand_over=lambda: self._outbox.hand_over(item, time.time() + UNSEEN_S),
            replaces=replaces,
        )
        try:
            reference = self._write(item, journal)
        except Reverted as error:
            self._refused(item, standing, error)
            return False
        except NonceRace as error:
            self._postpone(item, str(error), unsent=False)
            return True
        now_s, sent = time.time(), self._outbox.sent(item)
        if sent:
            self._outbox.taken(sent[-1], now_s)
        self._outbox.postpone(item, now_s + (LOOK_AGAIN_S if sent else UNSEEN_S), "", reference=reference)
        return True

    def _write(self, item: LedgerItem, journal: Journal) -> str:
        if item.kind is Kind.REGISTRATION:
            return self._writer.register_peer(self._peer_id, journal)
        if item.kind is Kind.REWARD:
            return self._writer.submit_reward(item.round_id, item.reward, self._peer_id, journal)
        return self._writer.submit_winners(item.round_id.number, item.winners, self._peer_id, journal)

    def _resend(self, transaction: Transaction) -> None:
        try:
            self._reads.broadcast(transaction.raw)
        except (AlreadyKnown, NonceRace) as error:  # the next look shows which one was mined
            logger.info("sent again, %s", error)
        self._outbox.taken(transaction, time.time())

    def _refused(self, item: LedgerItem, standing: Standing, error: Reverted) -> None:
        meaning = refused(error.name)
        if meaning is RevertMeaning.DONE:
            self._outbox.finish(item, ItemState.DONE, f"{meaning.value} ({error.name})")
        elif meaning is RevertMeaning.REGISTERED and standing.owner is not None:
            self._finish(item, standing, "")
        elif meaning is RevertMeaning.DROP:
            logger.error("dropped, and not sent again: %s. What comes later is not affected", error)
            self._outbox.finish(item, ItemState.DROPPED, str(error))
        elif meaning is RevertMeaning.UNREGISTERED:
            self._outbox.refused(item, str(error))
            if item.id in self._registered_for:
                raise SubmissionsHalted(
                    f"the contract does not take peer {self._peer_id} from account {self._writer.address} "
                    f"({error.name}), though it was registered again: nothing is submitted until the node is started "
                    "again; check ledger.contract_address and the account"
                ) from error
            self._registered_for.add(item.id)
            self._outbox.ensure_registration()
            self._outbox.postpone(item, time.time() + LOOK_AGAIN_S, f"{error}; registering again", unsent=True)
        else:
            self._outbox.refused(item, str(error))
            self._postpone(item, str(error), unsent=True)

    def _finish(self, item: LedgerItem, standing: Standing, reference: str) -> None:
        if item.kind is Kind.REGISTRATION:
            require_owner(self._peer_id, standing.owner, self._writer.address)
        self._outbox.finish(item, ItemState.DONE, "", reference)
        logger.info("%s of round %d is on the chain %s", item.kind.value, item.round_id.number, reference)

    def _hold(self, item: LedgerItem, round_id: RoundId) -> None:
        note = f"held: the chain is at round {round_id.number}, before the item's round {item.round_id.number}"
        self._outbox.postpone(item, time.time() + HOLD_S, note)

    def _postpone(self, item: LedgerItem, note: str, *, unsent: bool) -> None:
        wait_s = backoff_s(item.tries) * random.uniform(0.75, 1.25)
        self._outbox.postpone(item, time.time() + wait_s, note, unsent=unsent)


def _is_due(item: LedgerItem) -> bool:
    now_s = time.time()
    return not now_s < item.due_at_s < now_s + 2 * MAX_BACKOFF_S  # a later time means that the clock was set back


def require_owner(peer_id: str, owner: str | None, account: str) -> None:
    """Raises PeerTaken: the peer id is registered to another account."""
    if owner not in (None, account):
        raise PeerTaken(
            f"peer {peer_id} is registered to account {owner}, not to this node's {account}: use that account's wallet "
            "(ledger.keystore=...), or start as a new peer with another key (swarm.identity_path=...)"
        )
