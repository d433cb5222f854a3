"""Real chains for tests, with funded accounts: py-evm behind its HTTP server in this process, and anvil as a child."""

import contextlib
import subprocess
import threading
from pathlib import Path

import pytest
from eth_account import Account

from codezero.devchain.anvil import find_anvil
from codezero.devchain.client import ChainClient
from codezero.devchain.evm import EvmChain
from codezero.devchain.methods import Methods
from codezero.devchain.server import RpcServer

CHAIN_ID = 31337
NEEDS_ANVIL = pytest.mark.skipif(
    find_anvil() is None, reason="anvil is not installed (npm install @foundry-rs/anvil, or on PATH)"
)
ENGINES = ["py-evm", pytest.param("anvil", marks=NEEDS_ANVIL)]
ON_EACH_ENGINE = pytest.mark.parametrize("chain", ENGINES, indirect=True, scope="session")
"""For tests of what the engines do differently; the others have the fixture `chain` on one of them."""
FUNDS_WEI = 1000 * 10**18
ACCOUNTS = [Account.from_key(bytes([number]) * 32) for number in range(1, 9)]
"""With 1000 coins each. Use different ones in tests that count nonces."""


class DevChain:
    def __init__(self, url):
        self.url, self.chain_id, self.accounts = url, CHAIN_ID, ACCOUNTS

    def client(self, account=ACCOUNTS[0]):
        return ChainClient(self.url, CHAIN_ID, account)

    def coordinator(self, owner=ACCOUNTS[0], stages=1):
        """The address of a coordinator of one's own: about 0.1 s."""
        return self.client(owner).deploy("SwarmCoordinator", owner.address, stages)


@contextlib.contextmanager
def running(folder: Path, port=0):
    """The chain of a folder, a new one the first time."""
    funded = {bytes.fromhex(account.address[2:]): FUNDS_WEI for account in ACCOUNTS}
    evm = EvmChain(folder / "chain.db", CHAIN_ID, funded)
    server = RpcServer("127.0.0.1", port, Methods(evm).call)
    server.start()
    try:
        yield DevChain(f"http://127.0.0.1:{server.port}")
    finally:
        server.close()
        evm.close()


@contextlib.contextmanager
def on_anvil(*options):
    """A new chain, gone afterwards. It mines a block a transaction unless the options say otherwise."""
    command = [find_anvil(), "--port", "0", "--chain-id", str(CHAIN_ID), "--accounts", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = next(line for line in process.stdout if line.startswith("Listening on ")).split()[-1]
            threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would stop it
            chain = DevChain(f"http://{address}")
            for account in ACCOUNTS:
                chain.client().web3.provider.make_request("anvil_setBalance", [account.address, hex(FUNDS_WEI)])
            yield chain
        finally:
            process.kill()
