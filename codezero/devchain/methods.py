"""The methods of JSON-RPC that clients of a chain use (ethereum/execution-apis), on a chain that mines at once.

No method unlocks accounts, moves time or rewinds the chain: a client can only do what it can sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from eth.abc import BlockHeaderAPI
from eth.constants import ZERO_ADDRESS
from eth_typing import Address
from eth_utils.address import to_checksum_address
from eth_utils.hexadecimal import encode_hex

from codezero import __version__
from codezero.devchain.evm import (
    BLOCK_GAS,
    INVALID_PARAMS,
    SERVER_ERROR,
    TIP_WEI,
    CallRefused,
    EvmChain,
    UnsignedTransaction,
)
from codezero.devchain.records import base_fee
from codezero.devchain.store import Json

METHOD_NOT_FOUND = -32601
"""An error code of JSON-RPC."""
MAX_LOGS, MAX_FEE_HISTORY = 10_000, 1024
"""The most logs, and blocks of fees, in one answer."""
_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_HEAD = ("latest", "pending", "safe", "finalized")


class Methods:
    """The methods, by their names in JSON-RPC. Only one thread at a time may use it."""

    def __init__(self, chain: EvmChain) -> None:
        self._chain = chain
        names = [name for name in dir(self) if name.startswith(("eth_", "net_", "web3_"))]
        self._by_name: Mapping[str, Callable[..., Any]] = {name: getattr(self, name) for name in names}

    def call(self, method: str, params: Sequence[Any]) -> Any:
        """Calls a method. Raises CallRefused: there is none, its parameters are wrong, or the chain refuses."""
        if method not in self._by_name:
            raise CallRefused(METHOD_NOT_FOUND, f"the method {method[:100]} does not exist/is not available")
        function = self._by_name[method]
        most = function.__code__.co_argcount - 1
        least = most - len(function.__defaults__ or ())
        if not least <= len(params) <= most:
            raise CallRefused(INVALID_PARAMS, f"{method} takes {least} to {most} parameters, not {len(params)}")
        return function(*params)

    # About the chain

    def web3_clientVersion(self) -> str:
        return f"codezero/{__version__}/py-evm"

    def net_version(self) -> str:
        return str(self._chain.chain_id)

    def net_listening(self) -> bool:
        return True

    def eth_chainId(self) -> str:
        return hex(self._chain.chain_id)

    def eth_syncing(self) -> bool:
        return False

    def eth_accounts(self) -> list[str]:
        return []

    def eth_blockNumber(self) -> str:
        return hex(self._chain.head.block_number)

    def eth_gasPrice(self) -> str:
        return hex(base_fee(self._chain.next_header()) + TIP_WEI)

    def eth_maxPriorityFeePerGas(self) -> str:
        return hex(TIP_WEI)

    def eth_feeHistory(self, count: Any, newest: Any, percentiles: Any = ()) -> Json:
        count = int(count, 16) if isinstance(count, str) and _QUANTITY.fullmatch(count) else count
        if not isinstance(count, int) or not 1 <= count <= MAX_FEE_HISTORY:
            raise CallRefused(INVALID_PARAMS, f"a fee history of 1 to {MAX_FEE_HISTORY} blocks can be had")
        last = self._header(newest).block_number
        first = max(0, last - count + 1)
        headers = [self._chain.header(number) for number in range(first, last + 1)]
        behind = self._chain.next_header() if last == self._chain.head.block_number else self._chain.header(last + 1)
        rewards = [hex(TIP_WEI)] * (len(percentiles) if isinstance(percentiles, list) else 0)
        return {
            "oldestBlock": hex(first),
            "baseFeePerGas": [hex(base_fee(header)) for header in [*headers, behind]],
            "gasUsedRatio": [header.gas_used / header.gas_limit for header in headers],
            **({"reward": [rewards for _ in headers]} if rewards else {}),
        }

    # Accounts

    def eth_getBalance(self, address: Any, block: Any = "latest") -> str:
        return hex(self._chain.state(self._header(block)).get_balance(_address(address)))

    def eth_getTransactionCount(self, address: Any, block: Any = "latest") -> str:
        return hex(self._chain.state(self._header(block)).get_nonce(_address(address)))

    def eth_getCode(self, address: Any, block: Any = "latest") -> str:
        return encode_hex(self._chain.state(self._header(block)).get_code(_address(address)))

    def eth_getStorageAt(self, address: Any, slot: Any, block: Any = "latest") -> str:
        value = self._chain.state(self._header(block)).get_storage(_address(address), _quantity(slot))
        return f"0x{value:064x}"

    # Blocks, transactions, logs

    def eth_getBlockByNumber(self, block: Any, whole: Any = False) -> Json | None:
        if block == "pending":
            return self._pending()
        number = self._number(block)
        return self._shown(self._chain.store.block(number), whole)

    def eth_getBlockByHash(self, hash_: Any, whole: Any = False) -> Json | None:
        return self._shown(self._chain.store.block(encode_hex(_data(hash_, 32))), whole)

    def eth_getTransactionByHash(self, hash_: Any) -> Json | None:
        return self._chain.store.sent(encode_hex(_data(hash_, 32)))

    def eth_getTransactionReceipt(self, hash_: Any) -> Json | None:
        return self._chain.store.receipt(encode_hex(_data(hash_, 32)))

    def eth_getLogs(self, wanted: Any) -> list[Json]:
        if not isinstance(wanted, dict):
            raise CallRefused(INVALID_PARAMS, "a filter is an object")
        if "blockHash" in wanted:
            found = self._chain.store.block(encode_hex(_data(wanted["blockHash"], 32)))
            if found is None:
                raise CallRefused(SERVER_ERROR, "unknown block")
            first = last = int(found["number"], 16)
        else:
            first = self._number(wanted.get("fromBlock") or "latest")
            last = self._number(wanted.get("toBlock") or "latest")
        addresses = wanted.get("address") or []
        addresses = addresses if isinstance(addresses, list) else [addresses]
        topics = _topics(wanted.get("topics") or [])
        logs: list[Json] = []
        for log in self._chain.store.logs(first, last, [to_checksum_address(_address(each)) for each in addresses]):
            if _matches(log["topics"], topics):
                logs.append(log)
            if len(logs) > MAX_LOGS:
                raise CallRefused(SERVER_ERROR, f"more than {MAX_LOGS} logs: ask for fewer blocks")
        return logs

    # Executing

    def eth_call(self, call: Any, block: Any = "latest") -> str:
        return encode_hex(self._chain.call(_call(call), self._header(block)))

    def eth_estimateGas(self, call: Any, block: Any = "latest") -> str:
        return hex(self._chain.estimate_gas(_call(call), self._header(block)))

    def eth_sendRawTransaction(self, raw: Any) -> str:
        return self._chain.send(_data(raw))

    def _header(self, block: Any) -> BlockHeaderAPI:
        return self._chain.header(self._number(block))

    def _number(self, block: Any) -> int:
        """Returns the number of a block. Raises CallRefused: `block` is no tag and no number."""
        if block in _HEAD:
            return self._chain.head.block_number
        return 0 if block == "earliest" else _quantity(block)

    def _pending(self) -> Json:
        """Returns the block that a transaction sent now would be in; its timestamp is the chain's time."""
        header = self._chain.next_header()
        latest = cast(Json, self._chain.store.block(self._chain.head.block_number))
        unknown = dict.fromkeys(("hash", "nonce", "logsBloom", "miner"))
        return (
            latest
            | unknown
            | {
                "number": hex(header.block_number),
                "parentHash": latest["hash"],
                "timestamp": hex(header.timestamp),
                "baseFeePerGas": hex(base_fee(header)),
                "gasUsed": "0x0",
                "transactions": [],
            }
        )

    def _shown(self, block: Json | None, whole: Any) -> Json | None:
        if block is not None and whole is True:
            block["transactions"] = [self._chain.store.sent(hash_) for hash_ in block["transactions"]]
        return block


def _quantity(value: Any) -> int:
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise CallRefused(INVALID_PARAMS, "a number is written as hex with 0x, without leading zeros")
    return int(value, 16)


def _data(value: Any, length: int | None = None) -> bytes:
    try:
        if not isinstance(value, str) or not value.startswith("0x"):
            raise ValueError
        data = bytes.fromhex(value[2:])
        if length is not None and len(data) != length:
            raise ValueError
    except ValueError:
        what = "data" if length is None else f"{length} bytes"
        raise CallRefused(INVALID_PARAMS, f"{what} must be written as hex with 0x") from None
    return data


def _address(value: Any) -> Address:
    return Address(_data(value, 20))


def _call(value: Any) -> UnsignedTransaction:
    if not isinstance(value, dict):
        raise CallRefused(INVALID_PARAMS, "a call is an object")
    data = value.get("input") or value.get("data") or "0x"
    return UnsignedTransaction(
        sender=_address(value["from"]) if value.get("from") else ZERO_ADDRESS,
        to=_address(value["to"]) if value.get("to") else b"",
        data=_data(data),
        value=_quantity(value.get("value") or "0x0"),
        gas=min(BLOCK_GAS, _quantity(value.get("gas") or hex(BLOCK_GAS))),
    )


def _topics(value: Any) -> list[list[str]]:
    """Returns, for each position, the list of topics that match there; an empty list matches all."""
    if not isinstance(value, list) or len(value) > 4:
        raise CallRefused(INVALID_PARAMS, "topics are a list of at most 4")
    wanted = [each if isinstance(each, list) else [] if each is None else [each] for each in value]
    return [[encode_hex(_data(topic, 32)) for topic in each] for each in wanted]


def _matches(topics: Sequence[str], wanted: Sequence[Sequence[str]]) -> bool:
    fits = len(topics) >= len(wanted)
    return fits and all(not welcome or topic in welcome for topic, welcome in zip(topics, wanted, strict=False))
