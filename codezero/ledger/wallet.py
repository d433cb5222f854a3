"""The coordinator contract, written to with the node's own key."""

from __future__ import annotations

from codezero.errors import LedgerError
from codezero.ledger.account import Account
from codezero.ledger.contract import Contract, checksummed
from codezero.ledger.coordinator import Coordinator, CoordinatorWriter, coordinator_abi
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.rpc import Rpc


def connect(
    *, rpc_url: str, chain_id: int, contract_address: str, key: bytes, max_fee_gwei: float
) -> tuple[Coordinator, CoordinatorWriter]:
    """Returns what reads the contract and what writes to it, without asking the chain yet. Raises LedgerError: the
    address or the URL is not valid."""
    coordinator, contract, rpc = read_only(rpc_url=rpc_url, chain_id=chain_id, contract_address=contract_address)
    return coordinator, CoordinatorWriter(contract, Account(key, rpc, max_fee_gwei=max_fee_gwei))


def read_only(
    *, rpc_url: str, chain_id: int, contract_address: str, retries: int = 2
) -> tuple[Coordinator, Contract, Rpc]:
    """Returns what reads the contract, for nodes that do not sign. Raises LedgerError: address or URL is not valid."""
    try:
        contract = Contract(checksummed(contract_address), coordinator_abi())
    except ValueError as error:
        raise LedgerError(f"ledger.contract_address: {error}") from error
    transport = JsonRpc(rpc_url, retries=retries)
    rpc = Rpc(transport, chain_id=chain_id, contracts=[contract.address], error_names=contract.error_names)
    return Coordinator(contract, rpc), contract, rpc
