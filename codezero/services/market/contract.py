"""The market's contract, as one peer and its account use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from codezero.ledger.contract import Contract, ContractCall
from codezero.ledger.coordinator import Sender, Standing
from codezero.ledger.faults import Reverted
from codezero.ledger.rpc import Rpc, open_contract
from codezero.ledger.transactions import Journal

GAME_OPEN = 1
"""The contract's number for a running game. The public contract, whose source is not known, may have another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameView:
    """A game's state in the contract, and the peer's balance."""

    status: int
    """GAME_OPEN, or another number."""
    round: int
    num_choices: int
    balance: int
    """The peer's bet tokens, in units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketStanding(Standing):
    """The state of one bet or claim on the chain."""

    status: int
    round: int
    """Status and round of its game."""


class Market:
    """Reads and writes the contract. All methods raise LedgerError, as one of the subclasses in `ledger.faults`."""

    def __init__(self, contract: Contract, rpc: Rpc, sender: Sender, peer_id: str) -> None:
        self._contract, self._rpc, self._sender, self._peer_id = contract, rpc, sender, peer_id
        self.address = contract.address

    def game(self, game: int) -> GameView:
        """Reads a game's state with one HTTP request."""
        choices = self._contract.call("choiceCount(uint256)", game)
        balance = self._contract.call("betTokenBalance(string)", self._peer_id)
        values = self._rpc.read([*self._state(game), choices, balance])
        status, round_, num_choices, held = (cast(Any, value[0]) for value in values)
        return GameView(status=status, round=round_, num_choices=num_choices, balance=held)

    def tokens(self, game: int, choices: Sequence[int]) -> tuple[int, ...]:
        """Reads the peer's tokens on each of these choices, in units, with one HTTP request."""
        calls = [self._tokens(game, choice) for choice in choices]
        return tuple(cast(Any, value[0]) for value in self._rpc.read(calls))

    def bet(self, game: int, choice: int, held: int, hashes: Sequence[str]) -> MarketStanding:
        """Looks up a bet, which the contract has if the peer holds more than `held` units of the choice."""
        state, tokens = self._state(game), self._tokens(game, choice)
        values, receipts, nonce = self._rpc.look([*state, tokens], self._sender.address, hashes)
        status, round_, holds = (cast(Any, value[0]) for value in values)
        return MarketStanding(recorded=holds > held, receipts=receipts, nonce=nonce, status=status, round=round_)

    def claimed(self, game: int, hashes: Sequence[str], *, taken: bool) -> MarketStanding:
        """Looks up a claim. If the sign-in app has `taken` it, the contract has it if it refuses another: it would have
        taken it before the app was asked."""
        values, receipts, nonce = self._rpc.look(self._state(game), self._sender.address, hashes)
        status, round_ = (cast(Any, value[0]) for value in values)
        recorded = False
        if taken:
            try:
                self._rpc.simulate(self._claim(game), self._sender.address)
            except Reverted:
                recorded = True
        return MarketStanding(recorded=recorded, receipts=receipts, nonce=nonce, status=status, round=round_)

    def guess(self, game: int, clue: int, choice: int, amount: int, journal: Journal) -> str:
        """Bets `amount` units; returns and raises as `Sender.send`."""
        signature, peer = "guessAnswer(uint256,string,uint256,uint256,uint256)", self._peer_id
        bet = str(amount)  # decimal digits, since JavaScript would round a number
        fields = {"gameId": game, "peerId": peer, "clueId": clue, "choiceIdx": choice, "bet": bet}
        call = self._contract.call(signature, game, peer, clue, choice, amount, path="guess-answer", **fields)
        return self._send(call, journal)

    def claim(self, game: int, journal: Journal) -> str:
        """Claims a game's reward; returns and raises as `Sender.send`."""
        return self._send(self._claim(game), journal)

    def broadcast(self, raw: bytes) -> None:
        """Sends a signed transaction, as `Rpc.broadcast`."""
        self._rpc.broadcast(raw)

    def _send(self, call: ContractCall, journal: Journal) -> str:
        """Simulates the call first, since the sign-in app answers HTTP 500 both to a refusal and to an outage."""
        self._rpc.simulate(call, self._sender.address)
        return self._sender.send(call, journal)

    def _state(self, game: int) -> list[ContractCall]:
        return [self._contract.call(view, game) for view in ("gameStatus(uint256)", "currentRoundIdx(uint256)")]

    def _tokens(self, game: int, choice: int) -> ContractCall:
        return self._contract.call("choiceTokenBalance(uint256,string,uint256)", game, self._peer_id, choice)

    def _claim(self, game: int) -> ContractCall:
        signature, peer = "claimReward(uint256,string)", self._peer_id
        return self._contract.call(signature, game, peer, path="claim-reward", gameId=game, peerId=peer)


def open_market(*, rpc_url: str, chain_id: int, contract_address: str, sender: Sender, peer_id: str) -> Market:
    """Returns the market, without a request. Raises LedgerError: the address or the URL is not valid."""
    setting = "market.contract_address"
    contract, rpc = open_contract(
        "PredictionMarket", contract_address, rpc_url=rpc_url, chain_id=chain_id, setting=setting
    )
    return Market(contract, rpc, sender, peer_id)
