"""Reads a chain's logs into a tally, up to the newest block, with eth_getLogs.

Servers differ in how many blocks or logs they give at once, and in how they say so; so each failure of a range of
blocks halves it, down to one block. If time runs out, the next call reads on.
"""

from __future__ import annotations

import logging
import re
import time

from codezero.errors import LedgerError
from codezero.ledger.events import changes, topics
from codezero.ledger.faults import RateLimited, RpcBadReply, RpcRefused, RpcServerError, RpcTimeout, StaleChain
from codezero.ledger.jsonrpc import Request, RpcRefusal
from codezero.ledger.rpc import Rpc
from codezero.ledger.tally import Tally, TallyChange

SETTLED_BLOCKS = 12
"""The number of blocks behind the newest one from which a block is taken as final."""
MAX_SPAN = 1 << 22
"""The most blocks in a request."""
MANY = 1000
"""The number of changes in a range at which the next range is not made longer."""
RATE_WAIT_S = 1.0
"""Seconds before the next request to a server that limits their rate and names no time."""
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")

logger = logging.getLogger(__name__)


class Follower:
    """Reads one contract's logs into a tally."""

    def __init__(self, rpc: Rpc, contract: str, tally: Tally) -> None:
        self._rpc, self._contract, self._tally = rpc, contract, tally
        self._span, self._may_grow = tally.progress().span, True

    def follow(self, limit_s: float) -> None:
        """Reads for at most about `limit_s`, up to the newest block.

        Raises RpcFault, WrongChain, NoContract; LedgerError: the tally cannot be written. What was read before stays.
        """
        until_s = time.monotonic() + limit_s
        head = self._checked_head()
        self._tally.note_head(head)
        try:
            self._follow(head, until_s)
        finally:
            self._tally.note_span(self._span)

    def _follow(self, head: int, until_s: float) -> None:
        while (at := self._tally.progress()).next_block <= head - SETTLED_BLOCKS:
            found = self._read(at.next_block, head - SETTLED_BLOCKS, until_s)
            if found is None:
                return
            self._tally.add(found[0], at, found[1], found[2])
        recent: list[TallyChange] = []
        first = at.next_block
        while first <= head:
            found = self._read(first, head, until_s)
            if found is None:
                return
            recent += found[0]
            first = found[1] + 1
        self._tally.add_recent(recent, at, head)

    def _checked_head(self) -> int:
        """Returns the newest block's number, and clears the tally if the chain is not the one that was read so far.
        Raises StaleChain: the RPC does not have the last block that was read."""
        at = self._tally.progress()
        (answer,) = self._rpc.ask([("eth_blockNumber", [])])
        head = self._rpc.quantity(answer, "eth_blockNumber", bits=63)  # as the tally stores
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
        """Reads a range of blocks from `first` to `most` or earlier. Returns the changes in it, its last block and that
        block's hash; None if time is over."""
        while time.monotonic() < until_s:
            last, wait_s = min(first + self._span - 1, most), 0.0
            fault: LedgerError
            try:
                logs, block = self._rpc.ask([("eth_getLogs", [self._filter(first, last)]), _block(last)])
            except RateLimited as error:  # some servers answer so to a range with too many logs
                fault, wait_s = error, error.retry_after_s or RATE_WAIT_S
            except (RpcBadReply, RpcTimeout, RpcServerError, RpcRefused) as error:  # it is too long, or takes too long
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
        """Returns the hash of a block; None if the RPC does not have it."""
        block = self._rpc.fields(answer, "eth_getBlockByNumber")
        if block is None:
            return None
        found = block.get("hash")
        is_hash = isinstance(found, str) and _HASH.fullmatch(found)
        if not is_hash or self._rpc.quantity(block.get("number"), "eth_getBlockByNumber") != number:
            raise RpcBadReply(f"the RPC sent something other than block {number}: a proxy in between may have sent it")
        return str(found).lower()


def _block(number: int) -> Request:
    return "eth_getBlockByNumber", [hex(number), False]
