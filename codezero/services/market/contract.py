"""The market's contract for one peer: its calls, and the reads that both backends share."""

from __future__ import annotations

from typing import Any, cast

from codezero.errors import LedgerError
from codezero.ledger.contract import Abi, Contract, ContractCall, checksummed
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.rpc import Rpc
from codezero.services.market.backend import GameView


class MarketContract:
    """Makes the contract's calls about one peer."""

    def __init__(self, contract: Contract, peer_id: str) -> None:
        self._contract, self._peer_id = contract, peer_id
        self.address, self.error_names = contract.address, contract.error_names

    def view(self, game: int) -> list[ContractCall]:
        """Returns the calls for status, round and number of choices of a game, and for the peer's balance."""
        signatures = ("gameStatus(uint256)", "currentRoundIdx(uint256)", "choiceCount(uint256)")
        calls = [self._contract.call(signature, game) for signature in signatures]
        return [*calls, self._contract.call("betTokenBalance(string)", self._peer_id)]

    def tokens(self, game: int, choice: int) -> ContractCall:
        return self._contract.call("choiceTokenBalance(uint256,string,uint256)", game, self._peer_id, choice)

    def guess(self, game: int, clue: int, choice: int, amount: int) -> ContractCall:
        signature = "guessAnswer(uint256,string,uint256,uint256,uint256)"
        return self._contract.call(signature, game, self._peer_id, clue, choice, amount)

    def claim(self, game: int) -> ContractCall:
        return self._contract.call("claimReward(uint256,string)", game, self._peer_id)


class MarketReads:
    """The reading methods of `MarketBackend`."""

    def __init__(self, contract: MarketContract, rpc: Rpc) -> None:
        self._contract, self._rpc = contract, rpc
        self.address = contract.address

    def game(self, game: int) -> GameView:
        """Reads a game's state with one HTTP request."""
        values = self._rpc.read(self._contract.view(game))
        status, round_, num_choices, balance = (cast(Any, value[0]) for value in values)
        return GameView(status=status, round=round_, num_choices=num_choices, balance=balance)

    def tokens(self, game: int, num_choices: int) -> tuple[int, ...]:
        """Reads the peer's tokens on each choice with one HTTP request."""
        calls = [self._contract.tokens(game, choice) for choice in range(num_choices)]
        return tuple(cast(Any, value[0]) for value in self._rpc.read(calls))


def open_market(*, rpc_url: str, chain_id: int, contract_address: str, peer_id: str) -> tuple[MarketContract, Rpc]:
    """Returns the contract and its RPC, without a request. Raises LedgerError: an address or URL is not valid."""
    try:
        contract = MarketContract(Contract(checksummed(contract_address), _abi()), peer_id)
    except ValueError as error:
        raise LedgerError(f"market.contract_address: {error}") from error
    rpc = Rpc(
        JsonRpc(rpc_url),
        chain_id=chain_id,
        contracts=[contract.address],
        error_names=contract.error_names,
        contract_setting="market.contract_address",
    )
    return contract, rpc


def _abi() -> Abi:
    from codezero.ledger import abi  # imports eth-utils, which nodes without a chain do not need

    return abi.load("PredictionMarket").abi
