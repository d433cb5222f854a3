"""The account that pays and signs: it chooses fees and nonces, and sends one transaction at a time.

Nodes of one user and machine that share an account take turns under a file lock. A node of another machine may take the
same nonce; then the transaction is signed again. Without the lock that would happen to most transactions.
"""

from __future__ import annotations

import contextlib
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
from codezero.ledger.eth_imports import local_account
from codezero.ledger.faults import AlreadyKnown, FeesTooHigh, InsufficientFunds, NonceRace, RpcBadReply, RpcRefused
from codezero.ledger.jsonrpc import Answer, RpcRefusal
from codezero.ledger.rpc import LATEST, PENDING, Rpc, call_request
from codezero.ledger.transactions import Journal, Transaction
from codezero.runtime.files import try_lock

NONCE_TRIES = 12
"""The number of times a call is signed, if others take its nonce."""
NONCE_WAIT_S = (0.02, 0.15)
"""Shortest and longest wait in seconds between two of these tries, drawn uniformly."""
LOCK_WAIT_S = 20.0
"""Longest wait in seconds for the lock; then the node continues without it, and may have to sign again."""
GAS_MARGIN = 1.25
"""Factor on the estimate of gas: other transactions of the same block may make this one take more."""
MAX_GAS = 5_000_000
"""The most gas that is paid for; submitWinners with leaderboards takes about 0.7 million."""
DEFAULT_TIP_WEI = 10**9
"""The tip per unit of gas where the RPC has no eth_maxPriorityFeePerGas."""
REPLACEMENT = 1.25
"""Factor on both fees of a transaction that replaces one; nodes ask for at least 1.1."""
GWEI, ETHER = 10**9, 10**18

logger = logging.getLogger(__name__)


class Account:
    """Signs and sends calls as one account."""

    def __init__(self, key: bytes, rpc: Rpc, *, max_fee_gwei: float = 100.0) -> None:
        """`max_fee_gwei` is the most to pay for a unit of gas. Raises ValueError: `key` is not a private key."""
        self._signer = local_account(key)
        self.address = str(self._signer.address)
        self._rpc, self._max_fee_wei = rpc, round(max_fee_gwei * GWEI)

    def send(self, call: ContractCall, journal: Journal, nonce: int | None = None) -> str:
        """Signs and sends a call, and returns the hash of the transaction, which is not mined yet. Without a `nonce`
        that is the account's next.

        Raises Reverted: the contract would refuse it now; InsufficientFunds, FeesTooHigh, NonceRace; RpcFault: if it
        came after `journal.store`, the transaction may have arrived.
        """
        for attempt in range(1, NONCE_TRIES + 1):
            try:
                return self._send_once(call, journal, nonce)
            except NonceRace as error:
                if journal.replaces is not None or nonce is not None or attempt == NONCE_TRIES:
                    raise
                logger.info("%s, try %d: %s", call.name, attempt, error)
            except InsufficientFunds as error:
                raise InsufficientFunds(f"{error} at {self.address}; training continues") from error
            time.sleep(random.uniform(*NONCE_WAIT_S))
        raise AssertionError("unreachable")

    def _send_once(self, call: ContractCall, journal: Journal, nonce: int | None) -> str:
        with self._turn():
            transaction = self._sign(call, journal.replaces, nonce)
            journal.store(transaction)
            try:
                self._rpc.broadcast(transaction.raw)
            except AlreadyKnown:
                pass
            except NonceRace:  # some RPCs send it to several nodes, and answer what one says that has it mined already
                (found,) = self._rpc.ask([("eth_getTransactionByHash", [transaction.hash])])
                if self._rpc.fields(found, "eth_getTransactionByHash") is None:
                    raise
            return transaction.hash

    def _sign(self, call: ContractCall, replaces: Transaction | None, nonce: int | None) -> Transaction:
        """Returns a signed transaction with nonce, gas and fees, for which it makes one HTTP request. One that replaces
        another has its nonce and higher fees, unless the chain's next nonce is lower: then a transaction before that
        one is lost, and it would wait for ever. What is mined second reverts: the contracts take each call once."""
        simulation = call_request(call, self.address)
        simulated, estimate, count, block, tip, balance = self._rpc.ask(
            [
                simulation,
                ("eth_estimateGas", [simulation[1][0]]),
                ("eth_getTransactionCount", [self.address, PENDING]),
                ("eth_getBlockByNumber", [LATEST, False]),
                ("eth_maxPriorityFeePerGas", []),
                ("eth_getBalance", [self.address, LATEST]),
            ]
        )
        self._rpc.text(simulated, call.name)  # first, since its error has the name of the contract's error
        gas = round(self._rpc.quantity(estimate, "eth_estimateGas") * GAS_MARGIN)
        if gas > MAX_GAS:
            raise RpcBadReply(
                f"the RPC estimates {gas} units of gas for {call.name}, more than any call takes: not sent"
            )
        if nonce is None:
            nonce = self._rpc.quantity(count, "eth_getTransactionCount", bits=63)  # as the outbox stores
        max_fee_wei, tip_wei = self._fees(block, tip)
        if replaces is not None and replaces.nonce <= nonce:
            nonce = replaces.nonce
            max_fee_wei = max(max_fee_wei, round(replaces.max_fee_wei * REPLACEMENT) + 1)
            tip_wei = max(tip_wei, round(replaces.tip_wei * REPLACEMENT) + 1)
        if max_fee_wei > self._max_fee_wei:
            what = "the chain asks" if replaces is None else "to replace the one that was sent takes"
            raise FeesTooHigh(
                f"{what} {max_fee_wei / GWEI:g} gwei a unit of gas, more than "
                f"ledger.max_fee_gwei={self._max_fee_wei / GWEI:g}: raise it, or wait"
            )
        balance_wei = self._rpc.quantity(balance, "eth_getBalance")
        needed_wei = call.value + gas * max_fee_wei
        if balance_wei < needed_wei:
            raise InsufficientFunds(
                f"the account holds {ether(balance_wei)} ETH and {call.name} may take {ether(needed_wei)} ETH: "
                "send it some ETH"
            )
        return self._signed(call, nonce, gas, max_fee_wei, tip_wei)

    def _signed(self, call: ContractCall, nonce: int, gas: int, max_fee_wei: int, tip_wei: int) -> Transaction:
        signed = self._signer.sign_transaction(
            {
                "type": 2,
                "chainId": self._rpc.chain_id,
                "nonce": nonce,
                "to": call.to,
                "value": call.value,
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
        """Returns fee limit and tip, in wei a unit of gas, so that the base fee may double (EIP-1559)."""
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
        """Keeps other nodes of this user from using the account, from reading a nonce until the RPC has it."""
        try:
            name = f"codezero-{os.geteuid()}-account-{self._rpc.chain_id}-{self.address}.lock"
            descriptor = open_lock(Path(tempfile.gettempdir(), name))
        except (IdentityError, FileNotFoundError) as error:  # the latter: there is no folder for temporary files
            logger.warning(
                "cannot wait for other nodes of this user: %s. Nothing has to be done: if two of them use "
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
    """Waits for the lock until the deadline: a process that ends releases it, but one that hangs does not."""
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            logger.warning(
                "another process holds the account for more than %g s: continuing. If it happens again, a node of "
                "this account hangs: stop that one",
                LOCK_WAIT_S,
            )
            return
        time.sleep(random.uniform(0.01, 0.03))


def ether(wei: int) -> str:
    """Returns an amount of ether as exact decimal text without trailing zeros."""
    whole, part = divmod(wei, ETHER)
    return f"{whole}.{part:018d}".rstrip("0").rstrip(".")
