"""The account that pays and signs: fees, nonces, and one transaction at a time.

Nodes of one user and machine that share an account take turns under a file lock; against others a lost race for a nonce
is run again. Neither alone is enough: without the lock most races are lost, and no lock spans machines.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from codezero.errors import IdentityError
from codezero.identity.keyfile import open_lock
from codezero.ledger.contract import ContractCall
from codezero.ledger.ethereum import local_account
from codezero.ledger.faults import AlreadyKnown, FeesTooHigh, InsufficientFunds, NonceRace, RpcBadReply, RpcRefused
from codezero.ledger.jsonrpc import Answer, RpcRefusal
from codezero.ledger.rpc import LATEST, PENDING, Rpc, call_request
from codezero.ledger.transactions import Journal, Transaction

NONCE_TRIES = 12
NONCE_WAIT_S = (0.02, 0.15)
"""Between two tries, drawn evenly."""
LOCK_WAIT_S = 20.0
"""For other nodes of this machine; after that the turn is taken anyway, and nonces may be lost and tried again."""
GAS_MARGIN = 1.25
"""Over the estimate: other transactions of the same block may make ours dearer."""
MAX_GAS = 5_000_000
"""submitWinners with leaderboards takes about 0.7 million; more is no estimate to pay for."""
DEFAULT_TIP_WEI = 10**9
"""Where the RPC knows no eth_maxPriorityFeePerGas."""
REPLACEMENT = 1.25
"""Nodes take a replacement from 10 % more in both fees."""
GWEI, ETHER = 10**9, 10**18

logger = logging.getLogger(__name__)


class Account:
    """Sends calls as one account."""

    def __init__(self, key: bytes, rpc: Rpc, *, max_fee_gwei: float = 100.0) -> None:
        """`max_fee_gwei`: most to be paid for a unit of gas, whatever the RPC says. Raises ValueError: no key."""
        self._signer = local_account(key)
        self.address = str(self._signer.address)
        self._rpc, self._max_fee_wei = rpc, round(max_fee_gwei * GWEI)

    def balance_wei(self) -> int:
        """Raises what `Rpc.ask` raises."""
        (answer,) = self._rpc.ask([("eth_getBalance", [self.address, LATEST])])
        return self._rpc.quantity(answer, "eth_getBalance")

    def send(self, call: ContractCall, journal: Journal) -> str:
        """The hash of a transaction that the RPC took; not yet of one that is mined.

        Raises Reverted: the contract would refuse it now; InsufficientFunds, FeesTooHigh, NonceRace; RpcFault: if it
        came after `journal.store`, the transaction may have arrived.
        """
        for attempt in range(1, NONCE_TRIES + 1):
            try:
                return self._send_once(call, journal)
            except NonceRace as error:
                if journal.replaces is not None or attempt == NONCE_TRIES:
                    raise
                logger.info("%s, try %d: %s", call.name, attempt, error)
            except InsufficientFunds as error:
                raise InsufficientFunds(f"{error} at {self.address}; training goes on") from error
            time.sleep(random.uniform(*NONCE_WAIT_S))
        raise AssertionError("unreachable")

    def _send_once(self, call: ContractCall, journal: Journal) -> str:
        with self._turn():
            transaction = self._sign(call, journal.replaces)
            journal.store(transaction)
            with contextlib.suppress(AlreadyKnown):
                self._rpc.broadcast(transaction.raw)
            return transaction.hash

    def _sign(self, call: ContractCall, replaces: Transaction | None) -> Transaction:
        """All fields given, so that nothing else is asked for. One HTTP request."""
        simulation = call_request(call, self.address)
        answers = self._rpc.ask(
            [
                simulation,
                ("eth_estimateGas", [simulation[1][0]]),
                ("eth_getTransactionCount", [self.address, PENDING]),
                ("eth_getBlockByNumber", [LATEST, False]),
                ("eth_maxPriorityFeePerGas", []),
                ("eth_getBalance", [self.address, LATEST]),
            ]
        )
        self._rpc.text(answers[0], call.name)  # first: its error has the contract's name for what is wrong
        gas = round(self._rpc.quantity(answers[1], "eth_estimateGas") * GAS_MARGIN)
        if gas > MAX_GAS:
            raise RpcBadReply(
                f"the RPC estimates {gas} units of gas for {call.name}, more than any call takes: not sent"
            )
        nonce = self._rpc.quantity(answers[2], "eth_getTransactionCount")
        max_fee_wei, tip_wei = self._fees(answers[3], answers[4])
        if replaces is not None:
            nonce = replaces.nonce
            max_fee_wei = max(max_fee_wei, round(replaces.max_fee_wei * REPLACEMENT) + 1)
            tip_wei = max(tip_wei, round(replaces.tip_wei * REPLACEMENT) + 1)
        if max_fee_wei > self._max_fee_wei:
            raise FeesTooHigh(
                f"the chain asks {max_fee_wei / GWEI:g} gwei a unit of gas, more than "
                f"ledger.max_fee_gwei={self._max_fee_wei / GWEI:g}: raise it, or wait"
            )
        balance_wei = self._rpc.quantity(answers[5], "eth_getBalance")
        if balance_wei < gas * max_fee_wei:
            raise InsufficientFunds(
                f"the account holds {ether(balance_wei)} ETH and {call.name} may take {ether(gas * max_fee_wei)} ETH: "
                "send it some ETH"
            )
        signed = self._signer.sign_transaction(
            {
                "type": 2,
                "chainId": self._rpc.chain_id,
                "nonce": nonce,
                "to": call.to,
                "value": 0,
                "data": call.data,
                "gas": gas,
                "maxFeePerGas": max_fee_wei,
                "maxPriorityFeePerGas": tip_wei,
            }
        )
        return Transaction(
            hash="0x" + bytes(signed.hash).hex(),
            raw=bytes(signed.raw_transaction),
            nonce=nonce,
            max_fee_wei=max_fee_wei,
            tip_wei=tip_wei,
            signed_at_s=time.time(),
            sent_at_s=0.0,
        )

    def _fees(self, block: Answer, tip: Answer) -> tuple[int, int]:
        """Most to pay, and the tip in it, a unit of gas: room for a base fee that doubles (EIP-1559)."""
        base = (self._rpc.fields(block, "eth_getBlockByNumber") or {}).get("baseFeePerGas")
        if base is None:
            raise RpcRefused(
                "the chain has no base fee (EIP-1559), which transactions here need: use another RPC or chain"
            )
        base_wei = self._rpc.quantity(base, "baseFeePerGas")
        tip_wei = (
            DEFAULT_TIP_WEI if isinstance(tip, RpcRefusal) else self._rpc.quantity(tip, "eth_maxPriorityFeePerGas")
        )
        fitting = max(min(2 * base_wei + tip_wei, self._max_fee_wei), base_wei + tip_wei)
        return fitting, tip_wei

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Holds the account against other nodes of this user, from taking a nonce until the RPC knows of it."""
        try:
            name = f"codezero-{os.geteuid()}-account-{self._rpc.chain_id}-{self.address}.lock"
            descriptor = open_lock(Path(tempfile.gettempdir(), name))
        except (IdentityError, FileNotFoundError) as error:  # the latter: there is no folder for temporary files
            logger.warning(
                "other nodes of this user are not waited for: %s. Nothing has to be done: should two of them use "
                "one account at once, what is refused is sent again",
                error,
            )
            yield
            return
        try:
            _lock(descriptor, time.monotonic() + LOCK_WAIT_S)
            yield
        finally:
            os.close(descriptor)


def _lock(descriptor: int, deadline: float) -> None:
    """The lock goes with the process, however it ends; but another node can hang."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                logger.warning(
                    "another process holds the account for more than %g s: going on. If it comes again, a node of this "
                    "account hangs: stop that one",
                    LOCK_WAIT_S,
                )
                return
            time.sleep(random.uniform(0.01, 0.03))
        else:
            return


def ether(wei: int) -> str:
    """Exact, without trailing zeros."""
    whole, part = divmod(abs(wei), ETHER)
    sign = "-" if wei < 0 else ""
    return f"{sign}{whole}.{part:018d}".rstrip("0").rstrip(".")
