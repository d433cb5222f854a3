"""The market written to with a key of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from codezero.errors import LedgerError
from codezero.ledger.account import Account
from codezero.ledger.contract import Abi, Contract, checksummed
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.rpc import LATEST, Rpc
from codezero.ledger.transactions import Journal
from codezero.market.backend import GameView, Mined


class WalletMarket:
    """`Backend` for the account that owns a peer id."""

    signs = True

    def __init__(self, contract: Contract, account: Account, rpc: Rpc, peer_id: str) -> None:
        self._contract, self._account, self._rpc, self._peer_id = contract, account, rpc, peer_id

    def game(self, game: int) -> GameView:
        """One HTTP request."""
        signatures = ("gameStatus(uint256)", "currentRoundIdx(uint256)", "choiceCount(uint256)")
        calls = [self._contract.call(signature, game) for signature in signatures]
        values = self._rpc.read([*calls, self._contract.call("betTokenBalance(string)", self._peer_id)])
        status, round_, num_choices, balance = (cast(Any, value[0]) for value in values)
        return GameView(status=status, round=round_, num_choices=num_choices, balance=balance)

    def tokens(self, game: int, num_choices: int) -> tuple[int, ...]:
        """One HTTP request."""
        signature = "choiceTokenBalance(uint256,string,uint256)"
        calls = [self._contract.call(signature, game, self._peer_id, choice) for choice in range(num_choices)]
        return tuple(cast(Any, value[0]) for value in self._rpc.read(calls))

    def mined(self, hashes: Sequence[str]) -> Mined:
        """One HTTP request."""
        receipts = {}
        requests = [("eth_getTransactionReceipt", [hash_]) for hash_ in hashes]
        answers = self._rpc.ask([("eth_getTransactionCount", [self._account.address, LATEST]), *requests])
        for hash_, answer in zip(hashes, answers[1:], strict=True):
            receipt = self._rpc.fields(answer, "eth_getTransactionReceipt")
            if receipt is not None and receipt.get("blockNumber") is not None:
                receipts[hash_] = self._rpc.quantity(receipt.get("status"), "a receipt's status") == 1
        return Mined(receipts=receipts, nonce=self._rpc.quantity(answers[0], "eth_getTransactionCount"))

    def guess(self, game: int, clue: int, choice: int, amount: int, journal: Journal) -> str:
        signature = "guessAnswer(uint256,string,uint256,uint256,uint256)"
        return self._account.send(self._contract.call(signature, game, self._peer_id, clue, choice, amount), journal)

    def claim(self, game: int, journal: Journal) -> str:
        return self._account.send(self._contract.call("claimReward(uint256,string)", game, self._peer_id), journal)

    def broadcast(self, raw: bytes) -> None:
        self._rpc.broadcast(raw)


def market_abi() -> Abi:
    from codezero.ledger import abi  # imports eth-utils, which nodes without a chain do not need

    return abi.load("PredictionMarket").abi


def connect(
    *, rpc_url: str, chain_id: int, contract_address: str, key: bytes, max_fee_gwei: float, peer_id: str
) -> WalletMarket:
    """Asks nothing of the chain yet. Raises LedgerError: an address or URL is none."""
    try:
        contract = Contract(checksummed(contract_address), market_abi())
    except ValueError as error:
        raise LedgerError(f"market.contract_address: {error}") from error
    rpc = Rpc(JsonRpc(rpc_url), chain_id=chain_id, contracts=[contract.address], error_names=contract.error_names)
    return WalletMarket(contract, Account(key, rpc, max_fee_gwei=max_fee_gwei), rpc, peer_id)
