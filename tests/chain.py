"""A coordinator on the chain of the tests, and what a stage manager and a faucet do."""

import itertools
import os

from codezero.ledger import abi
from codezero.ledger.account import ETHER, Account
from codezero.ledger.contract import Contract
from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
from codezero.ledger.items import LedgerScope
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.outbox import Outbox
from codezero.ledger.rpc import Rpc
from tests.chains import CHAIN_ID
from tests.processes import wait_until

_KEYS = itertools.count(1)


class LiveChain:
    def __init__(self, chain):
        """`chain` is a `tests.chains.DevChain`, whose last account owns and pays."""
        self.url, self.transport, self.web3 = chain.url, JsonRpc(chain.url), chain.web3
        self.seen = chain.contract
        self._account = chain.accounts[-1]
        self.owner, self.client = self._account.address, chain.client(self._account)

    def deploy(self):
        """A coordinator of its own, at round 0."""
        return Deployed(self, self.client.deploy("SwarmCoordinator", self.owner, 1))

    def settle(self):
        """Waits until all that was sent is mined: anvil answers before that."""
        wait_until(lambda: self.transport.ask([("txpool_status", [])])[0]["pending"] == "0x0")

    def mine_at_once(self, monkeypatch):
        """Lets this process' transactions be mined when the call that sends them returns."""
        broadcast = Rpc.broadcast

        def broadcast_and_settle(rpc, raw):
            broadcast(rpc, raw)
            self.settle()

        monkeypatch.setattr(Rpc, "broadcast", broadcast_and_settle)

    def fund(self, address, wei=ETHER):
        self.client.transfer(address, wei)


class Deployed:
    """One coordinator on the chain."""

    def __init__(self, chain, address):
        self.chain, self.address = chain, address
        self.contract = Contract(address, abi.load("SwarmCoordinator").abi)
        self.coordinator = Coordinator(self.contract, self.rpc())

    def rpc(self, transport=None, **settings):
        settings = {"chain_id": CHAIN_ID, "contracts": [self.address]} | settings
        return Rpc(transport or self.chain.transport, **settings)

    def account(self, wei=ETHER, **settings):
        """A new one that holds some ETH."""
        account = Account(new_key(), self.rpc(), **settings)
        if wei:
            self.chain.fund(account.address, wei)
        return account

    def writer(self, **settings):
        return CoordinatorWriter(self.contract, self.account(**settings))

    def tick(self, rounds=1):
        contract = self.chain.client.contract("SwarmCoordinator", self.address)
        for _ in range(rounds):
            self.chain.client.transact(contract, "updateStageAndRound()")

    def read(self, signature, *arguments):
        ((value,),) = self.rpc().read([self.contract.call(signature, *arguments)])
        return value

    def outbox(self, path, peer_id="peer"):
        return Outbox(path, LedgerScope(chain_id=CHAIN_ID, contract=self.address, peer_id=peer_id))


def new_key():
    return b"\x11" * 24 + os.getpid().to_bytes(4, "big") + next(_KEYS).to_bytes(4, "big")
