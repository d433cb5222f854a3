"""A chain on py-evm that mines every transaction at once, in a block of its own."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import rlp
from eth.abc import BlockAPI, BlockHeaderAPI, ComputationAPI, SignedTransactionAPI, StateAPI
from eth.chains.base import MiningChain
from eth.constants import BLANK_ROOT_HASH, POST_MERGE_DIFFICULTY, POST_MERGE_MIX_HASH, POST_MERGE_NONCE, ZERO_ADDRESS
from eth.exceptions import CanonicalHeadNotFound, Revert, UnrecognizedTransactionType
from eth.vm.forks.shanghai import ShanghaiVM
from eth.vm.spoof import SpoofTransaction
from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_keys.exceptions import BadSignature
from eth_typing import Address, BlockNumber
from eth_utils.exceptions import ValidationError
from eth_utils.hexadecimal import encode_hex

from codezero.devchain import records
from codezero.devchain.store import ChainStore

BLOCK_GAS = 15_000_000
"""The most gas of a block, and so of a transaction or call. A deployment takes 2 M, and an endless loop ends in it."""
TIP_WEI = 10**9
"""The suggested priority fee, 1 gwei; blocks here are never full."""
_TOO_DEEP = "contracts call each other too deeply for this chain"
_ERROR_STRING = bytes.fromhex("08c379a0")

# Codes and first words of refusals are those of anvil and geth, which clients know.
INVALID_PARAMS, SERVER_ERROR, REJECTED, REVERTED = -32602, -32000, -32003, 3

MAX_RECURSION = 5000
"""Python's recursion limit here. py-evm sets it to 100,000, for contracts that call each other 1024 deep; but up to
Python 3.11 only this limit keeps deeply nested JSON from exhausting the stack, which ends the process."""
sys.setrecursionlimit(MAX_RECURSION)


class CallRefused(Exception):
    """A refusal of the chain, as an error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedTransaction:
    """A transaction without a signature, as eth_call and eth_estimateGas take it."""

    sender: bytes = ZERO_ADDRESS
    to: bytes = b""
    data: bytes = b""
    value: int = 0
    gas: int = BLOCK_GAS


class _Vm(ShanghaiVM):
    def validate_block(self, block: BlockAPI) -> None:
        """Checks nothing: all blocks are made here. py-evm would demand a second between any two blocks, so that a
        burst of transactions would have times in the future."""


class _Chain(MiningChain):
    vm_configuration = ((BlockNumber(0), _Vm),)

    def validate_block(self, block: BlockAPI) -> None:
        """As `_Vm.validate_block`."""


class EvmChain:
    """A chain in a file. Only one thread at a time may use it."""

    def __init__(self, path: Path, chain_id: int, funded: Mapping[bytes, int]) -> None:
        """Opens the chain in a file, or starts a new one in which the addresses in `funded` have these amounts of wei.

        Raises ChainError: the file cannot be used.
        """
        self.chain_id = chain_id
        self._store = ChainStore(path)
        kind = _Chain.configure("Chain", chain_id=chain_id)
        try:
            self._chain: MiningChain = kind(self._store)
        except CanonicalHeadNotFound:
            with self._store.transaction():
                self._chain = self._begin(kind, funded)

    def _begin(self, kind: type[_Chain], funded: Mapping[bytes, int]) -> MiningChain:
        parameters = {
            "coinbase": ZERO_ADDRESS,
            "difficulty": POST_MERGE_DIFFICULTY,
            "extra_data": b"",
            "gas_limit": BLOCK_GAS,
            "mix_hash": POST_MERGE_MIX_HASH,
            "nonce": POST_MERGE_NONCE,
            "receipt_root": BLANK_ROOT_HASH,
            "timestamp": int(time.time()),
            "transaction_root": BLANK_ROOT_HASH,
        }
        accounts = {
            Address(address): {"balance": wei, "nonce": 0, "code": b"", "storage": {}}
            for address, wei in funded.items()
        }
        chain = kind.from_genesis(self._store, parameters, accounts)  # type: ignore[arg-type]
        assert isinstance(chain, MiningChain)
        header = chain.get_canonical_head()
        self._store.add_block(records.block(header, [], len(rlp.encode(header))), [], [])
        return chain

    def close(self) -> None:
        self._store.close()

    # Reading

    @property
    def store(self) -> ChainStore:
        return self._store

    @property
    def head(self) -> BlockHeaderAPI:
        return self._chain.get_canonical_head()

    def header(self, number: int) -> BlockHeaderAPI:
        """Returns the header of a block. Raises CallRefused: there is no such block."""
        if number > self.head.block_number:
            raise CallRefused(SERVER_ERROR, "header not found")
        return self._chain.get_canonical_block_header_by_number(BlockNumber(number))

    def state(self, header: BlockHeaderAPI) -> StateAPI:
        """Returns the state of the accounts after a block."""
        return self._chain.get_vm(header).state

    def next_header(self) -> BlockHeaderAPI:
        """Returns the header of the block that a transaction sent now would be in. Time never goes back."""
        head = self.head
        now = max(int(time.time()), head.timestamp)
        return self._chain.create_header_from_parent(head, timestamp=now, gas_limit=head.gas_limit)

    def call(self, call: UnsignedTransaction, header: BlockHeaderAPI) -> bytes:
        """Runs a call after a block, without changing the chain. Returns its output. Raises CallRefused: it fails."""
        computation = self._try(call, header)
        _refuse_failure(computation)
        return computation.output

    def estimate_gas(self, call: UnsignedTransaction, header: BlockHeaderAPI) -> int:
        """Returns a gas limit with which a call succeeds. Raises CallRefused: it fails."""
        computation = self._try(call, header)
        _refuse_failure(computation)
        # Gas that is refunded at the end, or withheld from inner calls (EIP-150), is needed at first.
        needed = call.gas - computation.get_gas_remaining()
        for limit in (needed, needed * 9 // 8, needed * 2):
            limited = UnsignedTransaction(
                sender=call.sender, to=call.to, data=call.data, value=call.value, gas=min(limit, call.gas)
            )
            if not self._try(limited, header).is_error:
                return limited.gas
        return call.gas

    def _try(self, call: UnsignedTransaction, header: BlockHeaderAPI) -> ComputationAPI:
        vm = self._chain.get_vm(header)
        with vm.in_costless_state() as state:
            unsigned = vm.create_unsigned_transaction(
                nonce=state.get_nonce(Address(call.sender)),
                gas_price=0,
                gas=min(call.gas, BLOCK_GAS),
                to=Address(call.to),
                value=call.value,
                data=call.data,
            )
            try:
                return state.apply_transaction(SpoofTransaction(unsigned, from_=call.sender))  # type: ignore[arg-type]
            except ValidationError as error:
                raise CallRefused(SERVER_ERROR, str(error)) from error
            except RecursionError as error:
                raise CallRefused(SERVER_ERROR, _TOO_DEEP) from error

    # Writing

    def send(self, raw: bytes) -> str:
        """Mines a signed transaction, also one that reverts, and returns its hash. Raises CallRefused: it cannot be
        mined; sqlite3.Error: it cannot be stored, so it is not mined."""
        sent = self._decoded(raw)
        with self._store.transaction():
            header = self.next_header()
            self._check(sent, header)
            self._chain.header = header
            try:
                _, result, computation = self._chain.apply_transaction(sent)
            except ValidationError as error:
                raise CallRefused(SERVER_ERROR, str(error)) from error
            except RecursionError as error:
                raise CallRefused(SERVER_ERROR, _TOO_DEEP) from error
            block = self._chain.mine_block()
            created = computation.msg.storage_address if not sent.to and computation.is_success else None
            receipt = records.receipt(sent, block.header, result, created)
            hash_ = encode_hex(sent.hash)
            shown = records.block(block.header, [hash_], len(rlp.encode(block)))
            self._store.add_block(shown, [(hash_, records.transaction(sent, block.header), receipt)], receipt["logs"])
        return hash_

    def _decoded(self, raw: bytes) -> SignedTransactionAPI:
        """Decodes a transaction. Raises CallRefused: it is none, is not properly signed, or is for another chain."""
        try:
            sent = self._chain.get_vm(self.head).get_transaction_builder().decode(raw)
            sent.validate()
            chain_id, _ = sent.chain_id, sent.sender  # raises unless the signature is valid
        except (rlp.DecodingError, rlp.DeserializationError, UnrecognizedTransactionType, ValidationError) as error:
            raise CallRefused(INVALID_PARAMS, f"not a signed transaction: {error}") from error
        except (BadSignature, TypeError, ValueError, IndexError) as error:
            raise CallRefused(INVALID_PARAMS, "not a signed transaction") from error
        if chain_id is None:
            raise CallRefused(SERVER_ERROR, "only replay-protected (EIP-155) transactions are accepted")
        if chain_id != self.chain_id:
            raise CallRefused(REJECTED, f"invalid chain id for signer: have {chain_id} want {self.chain_id}")
        return sent

    def _check(self, sent: SignedTransactionAPI, header: BlockHeaderAPI) -> None:
        """Raises CallRefused for errors that py-evm would report in words that clients do not know."""
        state = self.state(self.head)
        nonce, balance = state.get_nonce(sent.sender), state.get_balance(sent.sender)
        if sent.nonce < nonce:
            raise CallRefused(REJECTED, f"nonce too low: next nonce {nonce}, tx nonce {sent.nonce}")
        if sent.nonce > nonce:
            raise CallRefused(REJECTED, f"nonce too high: next nonce {nonce}, tx nonce {sent.nonce}")
        if sent.gas > header.gas_limit:
            raise CallRefused(REJECTED, f"exceeds block gas limit: {sent.gas} of {header.gas_limit}")
        if sent.gas < sent.intrinsic_gas:
            raise CallRefused(REJECTED, f"intrinsic gas too low: have {sent.gas}, want {sent.intrinsic_gas}")
        if sent.max_fee_per_gas < records.base_fee(header):
            raise CallRefused(REJECTED, f"max fee per gas less than block base fee: {records.base_fee(header)}")
        needed = sent.gas * sent.max_fee_per_gas + sent.value
        if balance < needed:
            raise CallRefused(REJECTED, f"Insufficient funds for gas * price + value: have {balance} want {needed}")


def _refuse_failure(computation: ComputationAPI) -> None:
    """Raises CallRefused if the execution failed."""
    if computation.is_success:
        return
    if not isinstance(computation.error, Revert):
        raise CallRefused(SERVER_ERROR, f"{type(computation.error).__name__}: {computation.error}")
    data = computation.output
    reason = ""
    if data[:4] == _ERROR_STRING:
        with contextlib.suppress(DecodingError, UnicodeDecodeError):
            reason = f": {decode(['string'], data[4:])[0]}"
    raise CallRefused(REVERTED, f"execution reverted{reason}", encode_hex(data))
