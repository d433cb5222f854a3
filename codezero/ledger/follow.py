"""Brings a tally up to the chain's newest block, by eth_getLogs.

Servers differ in how many blocks or logs they give at once, and in how they say so; so whatever goes wrong with a range
of blocks halves it, down to one. What takes too long is gone on with the next time.
"""

from __future__ import annotations

import logging
import re
import time

from codezero.errors import LedgerError
from codezero.ledger.events import changes, topics
from codezero.ledger.faults import RateLimited, RpcBadReply, RpcServerError, RpcTimeout, StaleChain
from codezero.ledger.jsonrpc import Request, RpcRefusal
from codezero.ledger.rpc import Rpc
from codezero.ledger.tally import Tally, TallyChange

SETTLED_BLOCKS = 12
"""Behind the newest one, those that no other blocks are expected to replace."""
MAX_SPAN = 1 << 22
MANY = 1000
"""Changes in a range, beyond which the next one is not made longer."""
RATE_WAIT_S = 1.0
"""Before asking a server again that limits the rate of requests and does not say for how long."""
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")

logger = logging.getLogger(__name__)


class Follower:
    """Of one contract."""

    def __init__(self, rpc: Rpc, contract: str, tally: Tally) -> None:
        self._rpc, self._contract, self._tally = rpc, contract, tally
        self._span, self._may_grow = tally.progress().span, True

    def follow(self, limit_s: float) -> bool:
        """Whether the tally is up to the newest block: False where time was over before, give or take a request.

        Raises RpcFault, WrongChain, NoContract; LedgerError: the tally cannot be written. What was read until then is
        kept.
        """
        until_s = time.monotonic() + limit_s
        head = self._checked_head()
        self._tally.note_head(head)
        try:
            return self._follow(head, until_s)
        finally:
            self._tally.note_span(self._span)

    def _follow(self, head: int, until_s: float) -> bool:
        while (at := self._tally.progress()).next_block <= head - SETTLED_BLOCKS:
            found = self._read(at.next_block, head - SETTLED_BLOCKS, until_s)
            if found is None:
                return False
            self._tally.add(found[0], at, found[1], found[2])
        recent: list[TallyChange] = []
        first = at.next_block
        while first <= head:
            found = self._read(first, head, until_s)
            if found is None:
                return False
            recent += found[0]
            first = found[1] + 1
        self._tally.add_recent(recent, at, head)
        return True

    def _checked_head(self) -> int:
        """The newest block's number, of the chain that was read so far or, where it is another, begun anew. Raises
        StaleChain: the RPC does not know what was read."""
        at = self._tally.progress()
        (answer,) = self._rpc.ask([("eth_blockNumber", [])])
        head = self._rpc.quantity(answer, "eth_blockNumber")
        if head >= 1 << 63:
            raise RpcBadReply(f"the RPC says that block {head:.4g} is the newest: something is wrong with it")
        if at.last_hash:
            last = at.next_block - 1
            known = self._hash(self._rpc.ask([_block(last)])[0], last) if head >= last else None
            if known is None:
                raise StaleChain(
                    f"the chain was read up to block {last}, which the RPC does not have: it lags and will catch up, "
                    "or the chain was started anew and the leaderboard's file must be removed"
                )
            if known != at.last_hash:
                logger.warning(
                    "the chain has replaced block %d: the leaderboard is read anew. Nothing has to be done", last
                )
                self._tally.reset()
        return head

    def _read(self, first: int, most: int, until_s: float) -> tuple[list[TallyChange], int, str] | None:
        """What changed from block `first` on, the last block of which this holds, at most `most`, and this one's hash;
        None: time is over."""
        while time.monotonic() < until_s:
            last, wait_s = min(first + self._span - 1, most), 0.0
            fault: LedgerError
            try:
                logs, block = self._rpc.ask([("eth_getLogs", [self._filter(first, last)]), _block(last)])
            except RateLimited as error:  # what some servers also call a range that holds too many logs
                fault, wait_s = error, error.retry_after_s or RATE_WAIT_S
            except (RpcBadReply, RpcTimeout, RpcServerError) as error:  # too long an answer, or too long to make it
                fault = error
            else:
                if not isinstance(logs, RpcRefusal):
                    return self._accepted(logs, block, first, last)
                fault = self._rpc.fault(logs, "eth_getLogs")
            if (first == last and not wait_s) or time.monotonic() + wait_s >= until_s:
                raise fault
            self._span, self._may_grow = max(1, (last - first + 1) // 2), False
            time.sleep(wait_s)
        return None

    def _accepted(self, logs: object, block: object, first: int, last: int) -> tuple[list[TallyChange], int, str]:
        known = self._hash(block, last)
        if known is None:
            raise StaleChain(f"the RPC does not have block {last}, which it has told of: it lags")
        found = changes(logs, self._contract, first, last)
        if self._may_grow and len(found) < MANY:
            self._span = min(2 * self._span, MAX_SPAN)
        return found, last, known

    def _filter(self, first: int, last: int) -> dict[str, object]:
        return {
            "address": self._contract,
            "fromBlock": hex(first),
            "toBlock": hex(last),
            "topics": [list(topics())],
        }

    def _hash(self, answer: object, number: int) -> str | None:
        """Of a block, None where the RPC does not have it."""
        block = self._rpc.fields(answer, "eth_getBlockByNumber")
        if block is None:
            return None
        found = block.get("hash")
        is_hash = isinstance(found, str) and _HASH.fullmatch(found)
        if not is_hash or self._rpc.quantity(block.get("number"), "eth_getBlockByNumber") != number:
            raise RpcBadReply(f"the RPC sent something else than block {number}: something between may answer for it")
        return str(found).lower()


def _block(number: int) -> Request:
    return "eth_getBlockByNumber", [hex(number), False]
