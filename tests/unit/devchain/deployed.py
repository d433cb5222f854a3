"""A contract on the chain of the tests, called by whoever a test says, and read by web3."""

from web3.logs import DISCARD

from codezero.ledger.faults import Reverted


class Deployed:
    def __init__(self, chain, name, address):
        self._clients = [chain.client(account) for account in chain.accounts[:3]]
        self._contract = self._clients[0].contract(name, address)
        self._chain, self._seen = chain, chain.contract(name, address)
        self.address = address

    def send(self, signature, *arguments, by=0):
        """Has account `by` call a function; returns the events it emits as (name, arguments)."""
        hash_ = self._clients[by].transact(self._contract, signature, *arguments)["transactionHash"]
        receipt = self._chain.web3.eth.get_transaction_receipt(hash_)
        found = [
            (log["logIndex"], name, dict(log["args"]))
            for name in [entry["name"] for entry in self._seen.abi if entry["type"] == "event"]
            for log in self._seen.events[name]().process_receipt(receipt, errors=DISCARD)
        ]
        return [(name, arguments) for _, name, arguments in sorted(found, key=lambda each: each[0])]

    def refusal(self, signature, *arguments, by=0):
        """What the contract says when account `by` calls a function that it refuses."""
        try:
            self._clients[by].transact(self._contract, signature, *arguments)
        except Reverted as error:
            return error.name
        raise AssertionError(f"{signature} was not refused")

    def read(self, signature, *arguments):
        return self._seen.get_function_by_signature(signature)(*arguments).call()
