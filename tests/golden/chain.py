"""A ledger on a contract that takes everything, and what it was asked to record: as calldata and through the app."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from codezero.config import LedgerConfig, Vote
from codezero.ledger import abi, delivery, submitter
from codezero.ledger.chain import ChainLedger
from codezero.ledger.contract import Contract, ContractCall
from codezero.ledger.coordinator import CoordinatorWriter
from codezero.ledger.http import Server
from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.modal import AppAccount
from codezero.ledger.outbox import Outbox
from codezero.ledger.submitter import Submitter
from codezero.ledger.transactions import Journal
from tests.golden.peers import ROUND
from tests.unit.evaluate.loopback import reply, serve
from tests.unit.ledger.fake_chain import FakeChain

CONTRACT = "0x" + "c0" * 20
HASH = "0x" + "11" * 32


class Account:
    """A wallet's account that keeps the call it should sign."""

    address = CONTRACT

    def send(self, call: ContractCall, journal: Journal) -> str:
        self.call = call
        return HASH


class RecordedChain(FakeChain):
    """A contract that takes all it is sent, and notes how a wallet and the sign-in app would have been asked for it."""

    def __init__(self, app_url: str, bodies: list) -> None:
        super().__init__()
        self.round = ROUND
        self.calls: list[dict[str, object]] = []
        self._bodies, self._account = bodies, Account()
        contract = Contract(CONTRACT, abi.load("SwarmCoordinator").abi)
        self._wallet = CoordinatorWriter(contract, self._account)
        server = Server(app_url, what="the sign-in app", setting="ledger.proxy_url", timeout_s=30.0)
        self._app = CoordinatorWriter(contract, AppAccount(server, "org", CONTRACT, Path()))

    def view(self, peer_id, account):
        return super().view()

    def register_peer(self, peer_id, journal):
        self._note("register_peer", peer_id)
        return super().register_peer(peer_id, journal)

    def submit_reward(self, round_id, reward, peer_id, journal):
        self._note("submit_reward", round_id, reward, peer_id)
        return super().submit_reward(round_id, reward, peer_id, journal)

    def submit_winners(self, round_number, winners, peer_id, journal):
        self._note("submit_winners", round_number, winners, peer_id)
        return super().submit_winners(round_number, winners, peer_id, journal)

    def _standing(self, recorded, hashes):
        self.mine()  # so that whatever was sent is on the chain when it is looked for
        return super()._standing(recorded, hashes)

    def _note(self, method: str, *arguments: object) -> None:
        ignored = Journal(store=lambda sent: None)
        getattr(self._wallet, method)(*arguments, ignored)
        getattr(self._app, method)(*arguments, ignored)
        call = self._account.call
        self.calls.append(
            {
                "method": method,
                "arguments": [str(argument) for argument in arguments],
                "function": call.name,
                "calldata": [call.data[:10], *(call.data[at : at + 64] for at in range(10, len(call.data), 64))],
                "app": json.dumps(self._bodies[-1]),
            }
        )


@contextmanager
def recorded_ledger(folder: Path, peer_id: str, vote: Vote):
    """A ChainLedger, closed by its user, and the chain behind it."""
    folder.mkdir()
    with ExitStack() as stack:
        app = stack.enter_context(serve(reply(200, {"hash": HASH})))
        stack.enter_context(patch.object(submitter, "BUSY_POLL_S", 0.01))
        stack.enter_context(patch.object(delivery, "LOOK_AGAIN_S", 0.0))
        chain = RecordedChain(app.url, app.bodies)
        outbox = Outbox(folder / "outbox.sqlite", LedgerScope(chain_id=685685, contract=CONTRACT, peer_id=peer_id))
        submits = Submitter(outbox, chain, chain, LedgerConfig(warn_below_eth=0.0))
        submits.start()
        local = LocalLedger(folder / "ledger.sqlite", peer_id, vote=vote)
        yield ChainLedger(local, submits, 600.0), chain
