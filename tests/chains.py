"""A real chain for tests, with funded accounts: anvil as a child of this process."""

import contextlib
import subprocess
import threading

import pytest
from eth_account import Account
from web3 import HTTPProvider, Web3

from codezero.devchain.anvil import find_anvil
from codezero.devchain.client import ChainClient
from codezero.ledger import abi

CHAIN_ID = 31337
NO_ANVIL = "" if find_anvil() else "anvil is not installed: ./run_tests.sh gets it where there is npm"
FUNDS_WEI = 1000 * 10**18
ACCOUNTS = [Account.from_key(bytes([number]) * 32) for number in range(1, 9)]
"""With 1000 coins each. Use different ones in tests that count nonces."""


class DevChain:
    def __init__(self, url):
        self.url, self.chain_id, self.accounts = url, CHAIN_ID, ACCOUNTS
        self.web3 = Web3(HTTPProvider(url, request_kwargs={"timeout": 30}))

    def client(self, account=ACCOUNTS[0]):
        return ChainClient(self.url, CHAIN_ID, account)

    def coordinator(self, stages=1):
        """The address of a coordinator of one's own, which the first account owns."""
        return self.client().deploy("SwarmCoordinator", ACCOUNTS[0].address, stages)

    def contract(self, name, address):
        """A contract as web3 sees it, which checks what our own client says."""
        return self.web3.eth.contract(address=Web3.to_checksum_address(address), abi=abi.load(name).abi)

    def ask(self, method, *params):
        """Has anvil do what only it can, such as `evm_mine`."""
        answer = self.web3.provider.make_request(method, params)
        assert "error" not in answer, answer
        return answer["result"]


@contextlib.contextmanager
def running(*options, port=0):
    """A new chain unless the options of anvil have a `--state`; it mines a block a transaction unless they say not."""
    if NO_ANVIL:
        pytest.skip(NO_ANVIL)
    command = [find_anvil(), "--port", str(port), "--chain-id", str(CHAIN_ID), "--accounts", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = next(line for line in process.stdout if line.startswith("Listening on ")).split()[-1]
            threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would stop it
            chain = DevChain(f"http://{address}")
            for account in ACCOUNTS:
                chain.ask("anvil_setBalance", account.address, hex(FUNDS_WEI))
            yield chain
        finally:
            process.terminate()
