"""A chain to test against, and what a stage manager and a faucet do on it."""

import itertools
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from codezero.ledger.account import ETHER, Account
from codezero.ledger.contract import Contract, checksummed
from codezero.ledger.coordinator import Coordinator, WalletWriter, coordinator_abi
from codezero.ledger.items import Scope
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.outbox import Outbox
from codezero.ledger.rpc import Rpc
from tests.chain_server import CHAIN_ID

BYTECODE = "".join(Path(__file__).with_name("coordinator_bytecode.txt").read_text().split())
_KEYS = itertools.count(1)


@contextmanager
def running_chain():
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.chain_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield LiveChain(f"http://127.0.0.1:{int(server.stdout.readline())}")
    finally:
        server.stdin.close()
        server.wait(30)


class LiveChain:
    def __init__(self, url):
        self.url = url
        self.transport = JsonRpc(url)
        (accounts,) = self.transport.ask([("eth_accounts", [])])
        self.owner = accounts[0]

    def deploy(self):
        """A coordinator of its own, at round 0."""
        arguments = f"{int(self.owner, 16):064x}{1:064x}"  # owner, stages
        receipt = self.transact({"data": f"0x{BYTECODE}{arguments}", "gas": hex(4_000_000)})
        return Deployed(self, checksummed(receipt["contractAddress"]))

    def transact(self, fields):
        (hash_,) = self.transport.ask([("eth_sendTransaction", [{"from": self.owner} | fields])])
        (receipt,) = self.transport.ask([("eth_getTransactionReceipt", [hash_])])
        assert int(receipt["status"], 16) == 1
        return receipt

    def fund(self, address, wei=ETHER):
        self.transact({"to": address, "value": hex(wei), "gas": hex(21_000)})


class Deployed:
    """One coordinator on the chain."""

    def __init__(self, chain, address):
        self.chain, self.address = chain, address
        self.contract = Contract(address, coordinator_abi())
        self.coordinator = Coordinator(self.contract, self.rpc())

    def rpc(self, transport=None, **settings):
        settings = {"chain_id": CHAIN_ID, "contracts": [self.address]} | settings
        return Rpc(transport or self.chain.transport, error_names=self.contract.error_names, **settings)

    def account(self, wei=ETHER, **settings):
        """A new one that holds some ETH."""
        account = Account(new_key(), self.rpc(), **settings)
        if wei:
            self.chain.fund(account.address, wei)
        return account

    def writer(self, **settings):
        return WalletWriter(self.contract, self.account(**settings))

    def tick(self, rounds=1):
        for _ in range(rounds):
            call = self.contract.call("updateStageAndRound()")
            self.chain.transact({"to": self.address, "data": call.data, "gas": hex(200_000)})

    def read(self, signature, *arguments):
        ((value,),) = self.rpc().read([self.contract.call(signature, *arguments)])
        return value

    def outbox(self, path, peer_id="peer"):
        return Outbox(path, Scope(chain_id=CHAIN_ID, contract=self.address, peer_id=peer_id))


def new_key():
    return b"\x11" * 24 + os.getpid().to_bytes(4, "big") + next(_KEYS).to_bytes(4, "big")
