"""A ledger on a chain: the contract says which round it is, and gets the node's registration, rewards and votes.

The node's own file (`local`) holds every round all the same: the chain takes the sum of many.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from codezero.ledger.local import LocalLedger, warn_skipped
from codezero.ledger.submitter import Submitter
from codezero.types import Receipt, RoundId, ScoredGroup

logger = logging.getLogger(__name__)

LOOK_S = 1.0
"""Between two looks whether the round has moved on: how long a Ctrl-C may go unheard."""


class ChainLedger:
    """ports.Ledger. Rounds are those of the contract; one that passes while the node is busy is left out."""

    def __init__(self, local: LocalLedger, submitter: Submitter, patience_s: float) -> None:
        """patience_s: how long an RPC that does not answer may keep the node from its next round."""
        self._local, self._submitter, self._patience_s = local, submitter, patience_s

    def next_round(self, after: RoundId | None) -> RoundId:
        """The contract's round once it is past `after`. While the RPC is away, and patience is over, the round after:
        what is earned in it waits until the contract has come so far.

        Raises PeerTaken: the peer id is registered to another account.
        """
        waited_since_s, told = time.monotonic(), False
        while True:
            self._submitter.check()
            now = self._submitter.round_id
            if now is not None and (after is None or now.number > after.number):
                if after is not None:
                    warn_skipped(after, now.number)
                return now
            if after is None:  # a first start waits until it knows the round
                after = RoundId(number=-1)
            waited_s = time.monotonic() - waited_since_s
            if self._submitter.is_away and waited_s >= self._patience_s:
                logger.warning(
                    "going on without the chain: %s. Rewards wait on disk until it answers; if it stays away, check "
                    "ledger.rpc_url",
                    self._submitter.trouble,
                )
                return RoundId(number=after.number + 1)
            if not told and waited_s >= LOOK_S:
                told = True
                logger.info("waiting for the contract to go past round %d", after.number)
            self._submitter.wait_for_round(replace(after, stage=sys.maxsize), LOOK_S)

    def settle(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> Receipt:
        """Notes reward and vote durably, once a round; the chain gets them later. Raises LedgerError."""
        receipt = self._local.settle(round_id, groups)
        self._submitter.credit(round_id, receipt.reward, receipt.winners)
        return receipt

    def total_reward(self) -> float:
        return self._local.total_reward()

    def status(self) -> str:
        """What keeps submissions from the chain, in words; empty while all is well."""
        return self._submitter.trouble

    def close(self) -> None:
        """Has the chain take what is left, for a few seconds; the rest is submitted at the next start."""
        try:
            self._submitter.stop()
        finally:
            self._local.close()
