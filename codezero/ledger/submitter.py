"""The thread between a node and the chain: it follows the contract's round and submits the outbox's items.

It never delays or ends a round of training: what fails is tried again later, and the reason is kept in words. It may be
killed at any point (see `delivery`); stopping it in order only saves time.
"""

from __future__ import annotations

import json
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Sequence

from codezero.config import LedgerConfig, checkout
from codezero.errors import CodezeroError, LedgerError
from codezero.ledger.account import ETHER, ether
from codezero.ledger.coordinator import ChainView, Coordinator, CoordinatorWriter, Sender, check_round
from codezero.ledger.delivery import UNSEEN_S, backoff_s
from codezero.ledger.faults import FeesTooHigh, InsufficientFunds, OutboxError, PeerTaken, ProxyFault, RpcFault
from codezero.ledger.outbox import Outbox
from codezero.ledger.submissions import Submissions
from codezero.runtime.reminders import Reminders
from codezero.runtime.worker import Worker
from codezero.types import RoundId

POLL_S = 15.0
"""Seconds between two polls of the chain."""
BUSY_POLL_S = 2.0
"""Seconds between two polls while something that was sent is not confirmed."""
MAX_POLL_S = 300.0
"""Longest wait in seconds between two polls while the RPC does not answer."""
UNPAID_S = 300.0
"""Seconds between two tries after the account could not pay."""

logger = logging.getLogger(__name__)


class Submitter:
    """Submits one peer's items to the contract, in a thread."""

    def __init__(self, outbox: Outbox, chain: Coordinator, writer: CoordinatorWriter, config: LedgerConfig) -> None:
        self._outbox, self._chain, self._writer, self._config = outbox, chain, writer, config
        self._peer_id = outbox.scope.peer_id
        self._delivery = Submissions(outbox, chain, writer)
        self._others: list[Callable[[], bool]] = []
        self._worker = Worker("submitter", self._work)
        self._changed = threading.Condition()
        self._stop_by_s = 0.0  # monotonic
        self._view_note = f"view of {outbox.scope.contract} on chain {outbox.scope.chain_id}"
        self.round_id, self._seen_at_s = self._recalled()
        """`round_id` is the chain's round at the last poll, of this run or an earlier one; None if there was none."""
        self.view: ChainView | None = None
        """The result of the last poll; None if none has succeeded in this run."""
        self._fatal: PeerTaken | None = None
        self._trouble = ""
        self._failures = 0  # polls in a row that ended in an RpcFault
        self.is_away = False
        """True if the last poll gave no view of the chain: no answer, a wrong one, or no contract there."""
        self._busy = False
        """True if, at the last poll, something that was sent was not confirmed."""
        self._paused_until_s = 0.0  # monotonic
        self._reminders = Reminders()

    def start(self) -> None:
        """Polls the chain, then starts the thread.

        Raises WrongChain, NoContract, PeerTaken: nothing could ever be submitted; RpcFault: the chain cannot be
        reached, or mixes up answers, and no earlier run has stored its round.
        """
        is_first = self.round_id is None
        try:
            if is_first:  # the lower of two rounds: a wrong high one would be kept, and no right one could follow it
                rounds = [self._chain.view(self._peer_id, self._writer.address).round_id for _ in range(2)]
                self.round_id = min(rounds, key=lambda found: (found.number, found.stage))
                self._seen_at_s = time.time()
            try:
                self._poll()
            except PeerTaken:  # one answer may be another request's
                self._poll()
            self._outbox.note_trouble("")  # clears that of an earlier run
        except RpcFault as error:
            if is_first:
                raise
            self._failures += 1
            self.is_away = True
            self._troubled(error)
        self._worker.start()

    def also(self, deliver: Callable[[], bool]) -> None:
        """Has the thread call `deliver` at each poll as well, which returns True if it should be called again soon."""
        self._others.append(deliver)

    def wake(self) -> None:
        """Has the thread poll now, since an item was added."""
        self._worker.wake()

    @property
    def sender(self) -> Sender:
        """The account that submits."""
        return self._writer.sender

    @property
    def trouble(self) -> str:
        """The reason why items do not reach the chain, in words; empty if they do."""
        return self._delivery.halted or self._trouble

    def check(self) -> None:
        """Raises PeerTaken: the peer id is registered to another account, so this node cannot submit anything."""
        if self._fatal is not None:
            raise self._fatal

    def wait_for_round(self, after: int, timeout_s: float) -> bool:
        """Waits until the chain is past the round of a number or the submitter has failed for good; False if neither is
        in time."""

        def is_over() -> bool:
            return self._fatal is not None or (self.round_id is not None and self.round_id.number > after)

        with self._changed:
            return self._changed.wait_for(is_over, timeout_s)

    def credit(self, round_id: RoundId, reward: float, winners: Sequence[str]) -> None:
        """Stores a round's reward and vote in the outbox, to be submitted later. Raises OutboxError: it cannot."""
        self._outbox.credit(round_id, reward, winners)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Makes items of the sum and the last vote, gives the thread `timeout_s` to submit them, and ends it. What is
        not sent in time stays in the outbox. Raises OutboxError: the items could not be made; the sum is kept."""
        try:
            self._outbox.fold(seen=self.round_id)
        finally:
            self._stop_by_s = time.monotonic() + timeout_s
            self._worker.stop(timeout_s)
        waiting = len(self._outbox.open_items())
        if waiting:
            logger.warning(
                "%d submission%s to the chain wait%s on disk. Nothing has to be done but to start the node again some "
                "time, which sends them; %s status says why they wait",
                waiting,
                *(("", "s") if waiting == 1 else ("s", "")),
                checkout.COMMAND,
            )

    def close(self) -> None:
        """Closes the outbox, except under a thread that `stop` has left behind."""
        if not self._worker.is_alive:
            self._outbox.close()

    def _work(self) -> float:
        is_last = self._worker.is_stopping  # read before the tick, which then sees all items that `stop` made
        wait_s = self._tick()
        while is_last and self._busy and time.monotonic() + 2 * BUSY_POLL_S < self._stop_by_s:  # a poll takes time too
            time.sleep(BUSY_POLL_S)
            self._tick()
        return wait_s

    def _tick(self) -> float:
        """Polls once and does one step for every item. Returns the seconds until the next call."""
        self._busy = False
        before = self.view
        try:
            view = self._poll()
            self._failures = 0
            self._fold_if_due()
            try:
                busy = self._deliver(view)
            finally:  # bets and claims do not wait for a reward that cannot be looked up
                others = [deliver() for deliver in self._others]
            busy = busy or any(others)
        except RpcFault as error:
            self._failures += 1
            self._troubled(error)
            wait_s = backoff_s(self._failures - 1, MAX_POLL_S, POLL_S)
            return max(wait_s * random.uniform(0.75, 1.25), error.retry_after_s or 0.0)
        except PeerTaken as error:
            is_said_again = str(error) == self._trouble
            self._troubled(error)
            if not is_said_again:  # one answer may be another request's
                return POLL_S
            with self._changed:
                self._fatal = error
                self._changed.notify_all()
            return MAX_POLL_S
        except LedgerError as error:  # a wrong chain, no contract, a full disk: a person has to act
            self._troubled(error)
            return POLL_S
        except Exception as error:  # the thread's boundary: a bug in here must not end the node's training
            logger.exception("the submitter failed")
            bug = f"internal error in the submitter ({type(error).__name__}), see the log: please report it"
            self._troubled(LedgerError(bug))
            return MAX_POLL_S
        finally:
            self.is_away = self.view is before
        if time.monotonic() >= self._paused_until_s:
            halted = self._delivery.halted
            self._troubled(LedgerError(halted) if halted else None)
        self._busy = busy
        return BUSY_POLL_S if busy else POLL_S * random.uniform(0.7, 1.0)

    def _poll(self) -> ChainView:
        view = self._chain.view(self._peer_id, self._writer.address)
        check_round(self.round_id, view.round_id, self._since_view_s())
        require_owner(self._peer_id, view.owner, self._writer.address)
        if self.view is not None and view.balance_wei > self.view.balance_wei:
            self._paused_until_s = 0.0
        with self._changed:
            is_new = self.view is None or view.round_id != self.round_id
            self.view, self._seen_at_s, self.round_id = view, time.time(), view.round_id
            self._changed.notify_all()
        if is_new:
            self._outbox.remember(self._view_note, json.dumps([view.round_id.number, view.round_id.stage, time.time()]))
        if view.owner is None:
            self._outbox.ensure_registration()
        if view.balance_wei < self._config.warn_below_eth * ETHER:
            self._remind(
                "balance",
                f"the account {self._writer.address} holds {ether(view.balance_wei)} ETH, less than "
                f"ledger.warn_below_eth={self._config.warn_below_eth:g}: send it some before submissions stop",
            )
        return view

    def _deliver(self, view: ChainView) -> bool:
        if time.monotonic() < self._paused_until_s:
            return False
        try:
            return self._delivery.deliver(view)
        except (InsufficientFunds, FeesTooHigh) as error:
            self._paused_until_s = time.monotonic() + UNPAID_S
            self._troubled(error)
            return False
        except ProxyFault as error:
            self._paused_until_s = time.monotonic() + UNSEEN_S
            self._troubled(error)
            return False

    def _fold_if_due(self) -> None:
        owed = self._outbox.owed()
        if owed.since_s is None:
            return
        enough = 0 < self._config.submit_threshold <= abs(owed.points)
        waited_s = time.time() - owed.since_s  # below 0 if the clock was set back
        if enough or not 0 <= waited_s < self._config.submit_period_s:
            self._outbox.fold(seen=self.round_id)

    def _troubled(self, error: CodezeroError | None) -> None:
        """Stores the trouble, and warns of it; None means that there is no trouble any more."""
        text = "" if error is None else str(error)
        changed, self._trouble = text != self._trouble, text
        if error is not None:
            self._remind(type(error).__name__, text)
        elif changed:
            logger.info("the chain takes submissions again")
        if changed or error is not None:  # the same trouble again: its time is updated
            try:
                self._outbox.note_trouble(text, type(error).__name__)
            except OutboxError as full:
                self._remind("outbox", str(full))

    def _remind(self, kind: str, text: str) -> None:
        if self._reminders.is_due(kind):
            logger.warning("%s", text)

    def _since_view_s(self) -> float:
        """Returns the seconds since the chain was seen at its last round, also those for which the machine slept, which
        a monotonic clock leaves out; infinity if the clock was set back meanwhile."""
        elapsed_s = time.time() - self._seen_at_s
        return elapsed_s if elapsed_s >= 0 else math.inf

    def _recalled(self) -> tuple[RoundId | None, float]:
        """Returns the round stored last for the contract, None if there is none, and the Unix time at which it was."""
        kept = self._outbox.recall(self._view_note) or self._outbox.recall("view")  # which 0.1.0 had for any contract
        if not kept:
            return None, 0.0
        number, stage, *stored_at_s = json.loads(kept)  # no time: of a version that did not store it
        return RoundId(number=number, stage=stage), stored_at_s[0] if stored_at_s else 0.0


def require_owner(peer_id: str, owner: str | None, account: str) -> None:
    """Raises PeerTaken: the peer id is registered to another account."""
    if owner not in (None, account):
        raise PeerTaken(
            f"peer {peer_id} is registered to account {owner}, not to this node's {account}: use that account, by its "
            "wallet (ledger.keystore=...) or its sign-in, or start as a new peer with another key "
            "(swarm.identity_path=...)"
        )
