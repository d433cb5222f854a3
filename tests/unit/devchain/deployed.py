"""A contract on the chain of the tests, called over HTTP by whoever a test says."""

from web3.logs import DISCARD

from codezero.devchain.client import read
from codezero.errors import ChainError


class Deployed:
    def __init__(self, chain, name, address):
        self._clients = [chain.client(account) for account in chain.accounts[:3]]
        self.contract = self._clients[0].contract(name, address)
        self.address = address

    def send(self, signature, *arguments, by=0):
        """Has account `by` call a function; returns the events it emits as (name, arguments)."""
        receipt = self._clients[by].transact(self.contract, signature, *arguments)
        found = [
            (log["logIndex"], name, dict(log["args"]))
            for name in [entry["name"] for entry in self.contract.abi if entry["type"] == "event"]
            for log in self.contract.events[name]().process_receipt(receipt, errors=DISCARD)
        ]
        return [(name, arguments) for _, name, arguments in sorted(found, key=lambda each: each[0])]

    def refusal(self, signature, *arguments, by=0):
        """What the contract says when account `by` calls a function that it refuses."""
        try:
            self._clients[by].transact(self.contract, signature, *arguments)
        except ChainError as error:
            return str(error).removeprefix("the contract refuses: ")
        raise AssertionError(f"{signature} was not refused")

    def read(self, signature, *arguments):
        return read(self._clients[0], self.contract, signature, *arguments)
