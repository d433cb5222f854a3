"""Submits a peer's registration, rewards and votes to the coordinator."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from codezero.ledger.coordinator import ChainView, Coordinator, CoordinatorWriter, Standing
from codezero.ledger.delivery import LOOK_AGAIN_S, MAX_BACKOFF_S, Delivery, RevertMeaning
from codezero.ledger.faults import Reverted
from codezero.ledger.items import Kind, LedgerItem
from codezero.ledger.outbox import Outbox
from codezero.ledger.transactions import Journal

_REVERTS = {
    "RewardAlreadySubmitted": RevertMeaning.DONE,
    "WinnerAlreadyVoted": RevertMeaning.DONE,
    "InvalidVoterPeerId": RevertMeaning.UNREGISTERED,
    "InvalidVote": RevertMeaning.DROP,
}
"""The names of the contract's errors that are final: a later try fails in the same way."""

logger = logging.getLogger(__name__)


class Submissions(Delivery):
    """Submits one peer's items through one writer."""

    def __init__(self, outbox: Outbox, reads: Coordinator, writer: CoordinatorWriter) -> None:
        super().__init__(outbox, reads.broadcast)
        self._reads, self._writer, self._peer_id = reads, writer, outbox.scope.peer_id
        self._registered_for: set[int] = set()
        self.halted = ""
        """The reason why nothing is submitted until the node is started again; empty if there is none."""

    def deliver(self, view: ChainView) -> bool:
        """Does one step for each item that is due: the registration, then those that wait longest, so that one that the
        sign-in app keeps refusing does not hold up others. Returns and raises as `_try`."""
        busy = False
        if self.halted:
            return False
        for item in sorted(self._due(), key=lambda item: (item.kind is not Kind.REGISTRATION, item.due_at_s)):
            if item.kind is not Kind.REGISTRATION and view.owner != self._writer.address:
                continue
            at, its = view.round_id.number, item.round_id.number
            if at < its:
                self._hold_or_end(item, item.state, f"held: the chain is at round {at}, before the item's round {its}")
            else:
                busy |= self._try(item)
        return busy

    def _look(self, item: LedgerItem, hashes: Sequence[str]) -> Standing:
        account = self._writer.address
        if item.kind is Kind.REGISTRATION:
            return self._reads.registration(self._peer_id, account, hashes)
        if item.kind is Kind.REWARD:
            return self._reads.reward(item.round_id, self._peer_id, account, hashes)
        return self._reads.vote(item.round_id.number, self._peer_id, account, hashes)

    def _write(self, item: LedgerItem, journal: Journal) -> str:
        if item.kind is Kind.REGISTRATION:
            return self._writer.register_peer(self._peer_id, journal)
        if item.kind is Kind.REWARD:
            return self._writer.submit_reward(item.round_id, item.reward, self._peer_id, journal)
        return self._writer.submit_winners(item.round_id.number, item.winners, self._peer_id, journal)

    def _meaning(self, item: LedgerItem, name: str) -> RevertMeaning:
        return _REVERTS.get(name, RevertMeaning.RETRY)

    def _refused(self, item: LedgerItem, error: Reverted) -> None:
        meaning = self._meaning(item, error.name)
        if meaning is RevertMeaning.DROP:
            logger.error("dropped, and not sent again: %s. What comes later is not affected", error)
        if meaning is not RevertMeaning.UNREGISTERED:
            super()._refused(item, error)
            return
        self._outbox.refused(item, str(error))
        if item.id in self._registered_for:
            self.halted = (
                f"the contract does not take peer {self._peer_id} from account {self._writer.address} ({error.name}), "
                "though it was registered again: nothing is submitted until the node is started again; check "
                "ledger.contract_address and the account"
            )
            logger.error("%s", self.halted)
            self._outbox.postpone(item, time.time() + MAX_BACKOFF_S, self.halted, unsent=True)
            return
        self._registered_for.add(item.id)
        self._outbox.ensure_registration()
        self._outbox.postpone(item, time.time() + LOOK_AGAIN_S, f"{error}; registering again", unsent=True)
