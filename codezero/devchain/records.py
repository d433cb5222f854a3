"""Encodes blocks, transactions, receipts and logs for JSON-RPC (ethereum/execution-apis): quantities and data in hex.

A block has one transaction or, as the first, none.
"""

from __future__ import annotations

from eth.abc import BlockHeaderAPI, ReceiptAPI, SignedTransactionAPI
from eth_utils.address import to_checksum_address
from eth_utils.hexadecimal import encode_hex

from codezero.devchain.store import Json


def block(header: BlockHeaderAPI, transactions: list[str], num_bytes: int) -> Json:
    """Encodes a block. `transactions` are the hashes of its transactions, `num_bytes` its encoded length."""
    return {
        "number": hex(header.block_number),
        "hash": encode_hex(header.hash),
        "parentHash": encode_hex(header.parent_hash),
        "nonce": encode_hex(header.nonce),
        "mixHash": encode_hex(header.mix_hash),
        "sha3Uncles": encode_hex(header.uncles_hash),
        "logsBloom": _bloom(header.bloom),
        "transactionsRoot": encode_hex(header.transaction_root),
        "stateRoot": encode_hex(header.state_root),
        "receiptsRoot": encode_hex(header.receipt_root),
        "miner": to_checksum_address(header.coinbase),
        "difficulty": "0x0",
        "extraData": encode_hex(header.extra_data),
        "size": hex(num_bytes),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "baseFeePerGas": hex(base_fee(header)),
        "transactions": transactions,
        "uncles": [],
    }


def transaction(sent: SignedTransactionAPI, header: BlockHeaderAPI) -> Json:
    """Encodes a transaction in the block of a header."""
    type_id = sent.type_id or 0
    fees = {"gasPrice": hex(gas_price(sent, header))}
    if type_id == 2:
        fees["maxFeePerGas"] = hex(sent.max_fee_per_gas)
        fees["maxPriorityFeePerGas"] = hex(sent.max_priority_fee_per_gas)
    listed = [
        {"address": to_checksum_address(address), "storageKeys": [hex(key) for key in keys]}
        for address, keys in sent.access_list
    ]
    return {
        **_place(header),
        "hash": encode_hex(sent.hash),
        "type": hex(type_id),
        "chainId": None if sent.chain_id is None else hex(sent.chain_id),
        "nonce": hex(sent.nonce),
        "from": to_checksum_address(sent.sender),
        "to": to_checksum_address(sent.to) if sent.to else None,
        "value": hex(sent.value),
        "gas": hex(sent.gas),
        "input": encode_hex(sent.data),
        "v": hex(sent.y_parity if type_id else sent.v),  # type: ignore[attr-defined]
        "r": hex(sent.r),
        "s": hex(sent.s),
        **fees,
        **({"accessList": listed} if type_id else {}),
    }


def receipt(sent: SignedTransactionAPI, header: BlockHeaderAPI, result: ReceiptAPI, created: bytes | None) -> Json:
    """Encodes a receipt. `created` is the address of the contract that the transaction has deployed, if any."""
    logs = [
        {
            **_place(header),
            "transactionHash": encode_hex(sent.hash),
            "logIndex": hex(index),
            "address": to_checksum_address(log.address),
            "topics": [f"0x{topic:064x}" for topic in log.topics],
            "data": encode_hex(log.data),
            "removed": False,
        }
        for index, log in enumerate(result.logs)
    ]
    return {
        **_place(header),
        "transactionHash": encode_hex(sent.hash),
        "type": hex(sent.type_id or 0),
        "from": to_checksum_address(sent.sender),
        "to": to_checksum_address(sent.to) if sent.to else None,
        "contractAddress": None if created is None else to_checksum_address(created),
        "status": "0x1" if result.state_root == b"\x01" else "0x0",
        "gasUsed": hex(result.gas_used),
        "cumulativeGasUsed": hex(result.gas_used),
        "effectiveGasPrice": hex(gas_price(sent, header)),
        "logsBloom": _bloom(result.bloom),
        "logs": logs,
    }


def base_fee(header: BlockHeaderAPI) -> int:
    """Returns the base fee per unit of gas, in wei."""
    return header.base_fee_per_gas or 0  # None only before the fork London


def gas_price(sent: SignedTransactionAPI, header: BlockHeaderAPI) -> int:
    """Returns the price per unit of gas that the sender pays (EIP-1559), in wei."""
    return min(sent.max_fee_per_gas, base_fee(header) + sent.max_priority_fee_per_gas)


def _place(header: BlockHeaderAPI) -> Json:
    return {"blockHash": encode_hex(header.hash), "blockNumber": hex(header.block_number), "transactionIndex": "0x0"}


def _bloom(bits: int) -> str:
    return f"0x{bits:0512x}"
