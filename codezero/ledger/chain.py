"""A ledger on a chain: the contract says which round it is, and records the node's registration, rewards and votes.

The node's own file (`local`) has each round as well, since the chain gets the sum of many.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from codezero.ledger.local import LocalLedger, SkippedRounds
from codezero.ledger.submitter import Submitter
from codezero.types import RoundId, ScoredGroup

logger = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two checks for a new round, and so the longest delay of a Ctrl-C."""


class ChainLedger:
    """Implements `ports.Ledger`. Its rounds are the contract's; those that pass while the node is busy are skipped."""

    def __init__(self, local: LocalLedger, submitter: Submitter, patience_s: float) -> None:
        """`patience_s`: seconds that the node waits for its next round while the chain does not give one."""
        self._local, self.submitter, self._patience_s = local, submitter, patience_s
        self._skipped, self._is_told_ahead = SkippedRounds(), False

    def next_round(self, after: RoundId | None) -> RoundId:
        """Waits until the contract's round is past `after`, and returns it. If the RPC does not answer for
        `patience_s`, or its round is still before `after` then, it returns the number after `after`; rewards of that
        round are submitted for a round that the contract has.

        Raises PeerTaken: the peer id is registered to another account.
        """
        waited_since_s, told = time.monotonic(), False
        while True:
            self.submitter.check()
            now = self.submitter.round_id
            if now is not None and (after is None or now.number > after.number):
                if after is not None:
                    self._skipped.note(after, now.number)
                return now
            if after is None:  # a first start waits until it knows the round
                after = RoundId(number=-1)
            waited_s = time.monotonic() - waited_since_s
            if self.submitter.is_away and waited_s >= self._patience_s:
                logger.warning(
                    "continuing without the chain: %s. Rewards wait on disk until it answers; if it stays away, check "
                    "ledger.rpc_url",
                    self.submitter.trouble,
                )
                return RoundId(number=after.number + 1)
            if now is not None and now.number < after.number and not self.submitter.is_away:
                self._tell_ahead(now, after)
                if waited_s >= self._patience_s:
                    return RoundId(number=after.number + 1)
            if not told and waited_s >= LOOK_S:
                told = True
                logger.info("waiting for the contract to go past round %d", after.number)
            self.submitter.wait_for_round(after.number, LOOK_S)

    def _tell_ahead(self, now: RoundId, after: RoundId) -> None:
        if not self._is_told_ahead:
            self._is_told_ahead = True
            logger.warning(
                "the chain is at round %d, before this node's round %d: each round waits ledger.patience_s=%g s for it "
                "at most, and rewards count for the chain's round. Nothing has to be done after an outage or with "
                "another ledger than before; else check ledger.contract_address",
                now.number,
                after.number,
                self._patience_s,
            )

    def settle(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> None:
        """Stores reward and vote on disk, once per round; the chain gets them later. Raises LedgerError: it cannot."""
        reward, winners = self._local.settled(round_id, groups)
        self.submitter.credit(round_id, reward, winners)  # first, so that a kill in between does not lose it
        self._local.store(round_id, reward, winners)

    def total_reward(self) -> float:
        return self._local.total_reward()

    def status(self) -> str:
        """Returns the reason why nothing can be submitted now; empty if there is none."""
        return self.submitter.trouble

    def close(self) -> None:
        """Submits open items, for a few seconds at most; the rest is submitted at the next start."""
        try:
            self.submitter.stop()
        finally:
            self.submitter.close()
            self._local.close()
