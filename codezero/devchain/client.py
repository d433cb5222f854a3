"""A client of a chain that acts as one account: it deploys and calls contracts, and turns refusals into ChainError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

import requests
from eth_account.signers.local import LocalAccount
from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes
from web3 import HTTPProvider, Web3
from web3.contract import Contract
from web3.contract.contract import ContractFunction
from web3.exceptions import (
    ContractCustomError,
    ContractLogicError,
    TimeExhausted,
    TransactionNotFound,
    Web3Exception,
    Web3RPCError,
)
from web3.types import TxParams, TxReceipt

from codezero.errors import ChainError
from codezero.ledger import abi
from codezero.ledger.contract import error_name
from codezero.ledger.http import shown

TIMEOUT_S = 10.0
"""Longest wait in seconds for an answer."""
RECEIPT_S = 60.0
"""Longest wait in seconds for a transaction to be mined."""
ATTEMPTS = 5
"""How often a transaction is signed, if other programs take the account's nonces."""
TIP_WEI = 10**9
"""The tip per unit of gas."""


class Superseded(ChainError):
    """Another transaction of the account has used the nonce."""


class ChainClient:
    """Deploys and calls contracts as one account."""

    def __init__(self, rpc_url: str, chain_id: int, account: LocalAccount) -> None:
        """Connects. Raises ChainError: the chain cannot be reached, or has another id."""
        self.rpc_url, self.chain_id, self.account = rpc_url, chain_id, account
        provider = HTTPProvider(
            rpc_url,
            request_kwargs={"timeout": TIMEOUT_S},
            cache_allowed_requests=True,
            cacheable_requests={"eth_chainId"},  # else web3 asks twice with every call
            exception_retry_configuration=None,
        )
        self.web3 = Web3(provider)
        with self.asking():
            found = self.web3.eth.chain_id
        if found != chain_id:
            raise ChainError(f"{rpc_url} is chain {found}, not {chain_id}: give the --rpc-url of the right one")

    def contract(self, name: str, address: str) -> Contract:
        """Returns the contract of a name at an address. Raises ChainError: there is none."""
        checked = checksummed(address)
        with self.asking():
            code = self.web3.eth.get_code(checked)
        if not code:
            raise ChainError(f"there is no contract at {checked} on chain {self.chain_id}: run codezero chain deploy")
        return self.web3.eth.contract(address=checked, abi=abi.load(name).abi)

    def deploy(self, name: str, *arguments: object) -> str:
        """Deploys a contract and returns its address. Raises ChainError."""
        artifact = abi.load(name)
        factory = self.web3.eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
        data = cast(HexStr, factory.constructor(*arguments).data_in_transaction)
        return cast(str, self._send({"data": data})["contractAddress"])

    def transact(self, contract: Contract, signature: str, *arguments: object, nonce: int | None = None) -> TxReceipt:
        """Calls a function by its full signature and waits until the transaction is mined.

        Raises Superseded: `nonce` has been used. ChainError: the call is refused, or the chain cannot be reached.
        """
        function: ContractFunction = contract.get_function_by_signature(signature)(*arguments)
        data = function._encode_transaction_data()
        to = contract.address
        return self._send({"data": data, "to": to}, nonce)

    def transfer(self, address: str, wei: int) -> TxReceipt:
        """Sends an amount to an address and waits until that is mined. Raises ChainError."""
        return self._send({"to": checksummed(address), "value": cast(Any, wei)})

    def next_nonce(self) -> int:
        """Returns the nonce of the next transaction: how many of the account have been mined."""
        with self.asking():
            return self.web3.eth.get_transaction_count(self.account.address, "latest")

    def _send(self, transaction: TxParams, nonce: int | None = None) -> TxReceipt:
        if nonce is not None:
            return self._send_as(transaction, nonce)
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(Superseded):
                return self._send_as(transaction, self.next_nonce())
        return self._send_as(transaction, self.next_nonce())

    def _send_as(self, transaction: TxParams, nonce: int) -> TxReceipt:
        eth = self.web3.eth
        with self.asking():
            gas = eth.estimate_gas({**transaction, "from": self.account.address})
            base_fee = eth.get_block("latest")["baseFeePerGas"]
            filled: dict[str, Any] = {
                "value": 0,
                **transaction,
                "nonce": nonce,
                "chainId": self.chain_id,
                "gas": gas * 5 // 4,  # transactions mined before this one may make it take more
                "maxFeePerGas": base_fee * 2 + TIP_WEI,
                "maxPriorityFeePerGas": TIP_WEI,
            }
            signed = self.account.sign_transaction(filled)
            try:
                eth.send_raw_transaction(signed.raw_transaction)
            except Web3RPCError as error:
                if not _is_superseded(str(error)):
                    raise
                # web3 sends again if there is no answer in time: the transaction that was first may be this one.
                if not self._is_known(signed.hash):
                    raise Superseded(f"nonce {nonce} of {self.account.address} has been used") from error
            receipt = eth.wait_for_transaction_receipt(signed.hash, timeout=RECEIPT_S)
        if receipt["status"] != 1:
            raise ChainError(f"transaction {signed.hash.to_0x_hex()} was mined but failed: try again")
        return receipt

    def _is_known(self, transaction_hash: HexBytes) -> bool:
        try:
            self.web3.eth.get_transaction(transaction_hash)
        except TransactionNotFound:
            return False
        return True

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Turns web3's errors into ChainError, with the names of the contract's errors."""
        try:
            yield
        except ContractCustomError as error:
            name = error_name(str(error.data), abi.error_names())
            raise ChainError(f"the contract refuses: {name}") from error
        except ContractLogicError as error:
            raise ChainError(f"the contract refuses: {shown(str(error.message))}") from error
        except TimeExhausted as error:
            raise ChainError(f"{self.rpc_url} did not mine a transaction within {RECEIPT_S:.0f} s") from error
        except requests.Timeout as error:
            raise ChainError(f"{self.rpc_url} does not answer within {TIMEOUT_S:.0f} s") from error
        except requests.ConnectionError as error:
            raise ChainError(f"{self.rpc_url} cannot be reached: start the chain, or give its --rpc-url") from error
        # The last three come of answers that are no JSON, or have null instead of a value.
        except (Web3Exception, requests.RequestException, ValueError, TypeError, KeyError) as error:
            reason = shown(str(error)) or type(error).__name__
            raise ChainError(f"{self.rpc_url} does not answer as a chain does: {reason}") from error


def read(client: ChainClient, contract: Contract, signature: str, *arguments: object) -> Any:
    """Calls a view and returns its result. Raises ChainError."""
    with client.asking():
        return contract.get_function_by_signature(signature)(*arguments).call()


def checksummed(address: str) -> ChecksumAddress:
    """Returns an address with its checksum. Raises ChainError: the text is no address."""
    try:
        return Web3.to_checksum_address(address)
    except ValueError as error:
        raise ChainError(f"{address} is no address: an address has 0x and 40 hexadecimal digits") from error


def _is_superseded(message: str) -> bool:
    """Returns True for the messages by which anvil, geth and our own chain say that a nonce has been used."""
    text = message.lower()
    known = ("nonce too low", "already known", "already imported", "replacement transaction underpriced")
    return any(words in text for words in known)
