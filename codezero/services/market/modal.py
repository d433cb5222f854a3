"""The market through the sign-in app (SPEC §2), which writes as the user's smart account.

Reads go to the contract directly. The app answers HTTP 500 both to a refusal of the market and to an outage. So every
write is simulated on the chain first, and a claim is checked there afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from codezero.ledger.contract import ContractCall
from codezero.ledger.faults import ProxyFault, Reverted
from codezero.ledger.modal import TIMEOUT_S, AppAccount, app_account
from codezero.ledger.rpc import Rpc, call_request
from codezero.ledger.transactions import Journal
from codezero.services.market.backend import Mined
from codezero.services.market.contract import MarketContract, MarketReads, open_market

MINED_S, LOOK_S = 30.0, 1.0
"""The seconds for which a claim that the app took is looked for on the chain, and those between two looks."""


class ModalMarket(MarketReads):
    """The `MarketBackend` whose transactions the app signs, so that none is in the journal."""

    signs = False

    def __init__(self, contract: MarketContract, app: AppAccount, rpc: Rpc, peer_id: str) -> None:
        super().__init__(contract, rpc)
        self._app, self._peer_id = app, peer_id

    def mined(self, hashes: Sequence[str]) -> Mined:
        return Mined(receipts={}, nonce=0)

    def guess(self, game: int, clue: int, choice: int, amount: int, journal: Journal) -> str:
        """Sends the amount as decimal digits, since JavaScript would round a number."""
        self._simulate(self._contract.guess(game, clue, choice, amount))
        fields = {"gameId": game, "peerId": self._peer_id, "clueId": clue, "choiceIdx": choice, "bet": str(amount)}
        return self._app.write("guess-answer", **fields)

    def claim(self, game: int, journal: Journal) -> str:
        """Claims the reward; returns when the contract has nothing left to claim."""
        call = self._contract.claim(game)
        self._simulate(call)
        reference = self._app.write("claim-reward", gameId=game, peerId=self._peer_id)
        deadline = time.monotonic() + MINED_S
        while time.monotonic() < deadline:
            try:
                self._simulate(call)
            except Reverted:
                return reference
            time.sleep(LOOK_S)
        raise ProxyFault(
            f"the sign-in app sent the claim for game {game} as {reference}, and the contract does not have it after "
            f"{MINED_S:g} s: looked at again later"
        )

    def broadcast(self, raw: bytes) -> None:
        raise AssertionError("nothing here was signed by this node")

    def _simulate(self, call: ContractCall) -> None:
        """Simulates a call by the smart account. Raises Reverted: the contract would refuse it now."""
        (answer,) = self._rpc.ask([call_request(call, self._app.address)])
        self._rpc.text(answer, call.name)


def connect(
    *,
    rpc_url: str,
    chain_id: int,
    contract_address: str,
    proxy_url: str,
    org_id: str,
    account_address: str,
    login_dir: Path,
    peer_id: str,
    timeout_s: float = TIMEOUT_S,
) -> ModalMarket:
    """Returns the market, without a request. Raises LedgerError: an address or URL is not valid, or nobody has signed
    in."""
    contract, rpc = open_market(rpc_url=rpc_url, chain_id=chain_id, contract_address=contract_address, peer_id=peer_id)
    app = app_account(
        proxy_url=proxy_url, org_id=org_id, account_address=account_address, login_dir=login_dir, timeout_s=timeout_s
    )
    return ModalMarket(contract, app, rpc, peer_id)
