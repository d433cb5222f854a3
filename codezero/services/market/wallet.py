"""The market, written to with the user's own key."""

from __future__ import annotations

from collections.abc import Sequence

from codezero.ledger.account import Account
from codezero.ledger.rpc import LATEST, Rpc
from codezero.ledger.transactions import Journal
from codezero.services.market.backend import Mined
from codezero.services.market.contract import MarketContract, MarketReads, open_market


class WalletMarket(MarketReads):
    """The `MarketBackend` of the account that owns the peer id."""

    signs = True

    def __init__(self, contract: MarketContract, account: Account, rpc: Rpc) -> None:
        super().__init__(contract, rpc)
        self._account = account

    def mined(self, hashes: Sequence[str]) -> Mined:
        """Reads the receipts with one HTTP request."""
        receipts = {}
        requests = [("eth_getTransactionReceipt", [hash_]) for hash_ in hashes]
        answers = self._rpc.ask([("eth_getTransactionCount", [self._account.address, LATEST]), *requests])
        for hash_, answer in zip(hashes, answers[1:], strict=True):
            receipt = self._rpc.fields(answer, "eth_getTransactionReceipt")
            if receipt is not None and receipt.get("blockNumber") is not None:
                receipts[hash_] = self._rpc.quantity(receipt.get("status"), "a receipt's status") == 1
        return Mined(receipts=receipts, nonce=self._rpc.quantity(answers[0], "eth_getTransactionCount"))

    def guess(self, game: int, clue: int, choice: int, amount: int, journal: Journal) -> str:
        return self._account.send(self._contract.guess(game, clue, choice, amount), journal)

    def claim(self, game: int, journal: Journal) -> str:
        return self._account.send(self._contract.claim(game), journal)

    def broadcast(self, raw: bytes) -> None:
        self._rpc.broadcast(raw)


def connect(
    *, rpc_url: str, chain_id: int, contract_address: str, key: bytes, max_fee_gwei: float, peer_id: str
) -> WalletMarket:
    """Returns the market, without a request. Raises LedgerError: an address or URL is not valid."""
    contract, rpc = open_market(rpc_url=rpc_url, chain_id=chain_id, contract_address=contract_address, peer_id=peer_id)
    return WalletMarket(contract, Account(key, rpc, max_fee_gwei=max_fee_gwei), rpc)
