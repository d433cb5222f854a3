"""A client of a chain for its owner: it deploys and calls contracts, and waits until what it sends is mined."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from eth_abi.abi import encode
from eth_account.signers.local import LocalAccount

from codezero.config import checkout
from codezero.errors import ChainError
from codezero.ledger import abi
from codezero.ledger.account import Account
from codezero.ledger.contract import Contract, ContractCall
from codezero.ledger.contract import checksummed as with_checksum
from codezero.ledger.faults import WrongChain
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.rpc import LATEST, Rpc
from codezero.ledger.transactions import Journal

RECEIPT_S = 60.0
"""Longest wait in seconds for a transaction to be mined."""
POLL_S = 0.02
"""Seconds between two questions for a receipt; anvil mines at once."""


class ChainClient:
    """Deploys and calls contracts as one account."""

    def __init__(self, rpc_url: str, chain_id: int, account: LocalAccount) -> None:
        """Connects. Raises LedgerError: the chain cannot be reached; ChainError: it has another id."""
        self.rpc_url, self.chain_id = rpc_url, chain_id
        self.rpc = Rpc(JsonRpc(rpc_url, setting="--rpc-url"), chain_id=chain_id)
        self._account = Account(bytes(account.key), self.rpc)
        self.address = self._account.address
        try:
            self.rpc.ask([])
        except WrongChain as error:
            raise ChainError(f"{rpc_url} is not chain {chain_id}: give the --rpc-url of the right one") from error

    def has_code(self, address: str) -> bool:
        """Returns True if there is a contract at an address. Raises LedgerError."""
        (code,) = self.rpc.ask([("eth_getCode", [address, LATEST])])
        return self.rpc.text(code, "eth_getCode") != "0x"

    def contract(self, name: str, address: str) -> Contract:
        """Returns the contract of a name at an address. Raises ChainError: there is none; LedgerError."""
        contract = Contract(checksummed(address), abi.load(name).abi)
        if not self.has_code(contract.address):
            raise ChainError(
                f"there is no contract at {contract.address} on chain {self.chain_id}: "
                f"run {checkout.COMMAND} chain deploy"
            )
        return contract

    def read(self, contract: Contract, signature: str, *arguments: object) -> Any:
        """Calls a view and returns its one value. Raises LedgerError."""
        ((value,),) = self.rpc.read([contract.call(signature, *arguments)])
        return value

    def deploy(self, name: str, *arguments: object) -> str:
        """Deploys a contract and returns its address. Raises ChainError, LedgerError."""
        artifact = abi.load(name)
        (inputs,) = (entry["inputs"] for entry in artifact.abi if entry["type"] == "constructor")
        data = artifact.bytecode + encode([each["type"] for each in inputs], arguments).hex()
        return checksummed(str(self._send(ContractCall(to="", name=name, data=data, outputs=()))["contractAddress"]))

    def transact(
        self, contract: Contract, signature: str, *arguments: object, nonce: int | None = None
    ) -> Mapping[str, object]:
        """Calls a function by its full signature, waits until the transaction is mined, and returns its receipt.

        Raises NonceRace: `nonce` has been used; Reverted: the contract refuses; ChainError, LedgerError.
        """
        return self._send(contract.call(signature, *arguments), nonce)

    def transfer(self, address: str, wei: int) -> None:
        """Sends an amount to an address and waits until that is mined. Raises ChainError, LedgerError."""
        self._send(ContractCall(to=checksummed(address), name="a transfer", data="0x", outputs=(), value=wei))

    def next_nonce(self) -> int:
        """Returns the nonce of the next transaction: how many of the account have been mined. Raises LedgerError."""
        (answer,) = self.rpc.ask([("eth_getTransactionCount", [self.address, LATEST])])
        return self.rpc.quantity(answer, "eth_getTransactionCount")

    def time_of(self, block: str) -> int:
        """Returns the Unix time of a block, a number in hex or a name such as `pending`. Raises LedgerError."""
        (answer,) = self.rpc.ask([("eth_getBlockByNumber", [block, False])])
        found = self.rpc.fields(answer, "eth_getBlockByNumber") or {}
        return self.rpc.quantity(found.get("timestamp"), "a block's timestamp")

    def _send(self, call: ContractCall, nonce: int | None = None) -> Mapping[str, object]:
        hash_ = self._account.send(call, Journal(store=lambda _: None), nonce)
        deadline = time.monotonic() + RECEIPT_S
        while time.monotonic() < deadline:
            (answer,) = self.rpc.ask([("eth_getTransactionReceipt", [hash_])])
            receipt = self.rpc.fields(answer, "eth_getTransactionReceipt")
            if receipt is not None:
                if self.rpc.quantity(receipt.get("status"), "a receipt's status") != 1:
                    raise ChainError(f"transaction {hash_} was mined but failed: try again")
                return receipt
            time.sleep(POLL_S)
        raise ChainError(f"{self.rpc_url} mined no transaction within {RECEIPT_S:.0f} s: check whether it is busy")


def checksummed(address: str) -> str:
    """Returns an address with its checksum. Raises ChainError: the text is no address."""
    try:
        return with_checksum(address)
    except ValueError as error:
        raise ChainError(str(error)) from error
