"""A real chain for tests: py-evm behind its HTTP server, in this process, with funded accounts."""

import contextlib
from pathlib import Path

from eth_account import Account

from codezero.chain.client import ChainClient
from codezero.chain.evm import EvmChain
from codezero.chain.methods import Methods
from codezero.chain.server import RpcServer

CHAIN_ID = 31337
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
    funded = {bytes.fromhex(account.address[2:]): 1000 * 10**18 for account in ACCOUNTS}
    evm = EvmChain(folder / "chain.db", CHAIN_ID, funded)
    server = RpcServer("127.0.0.1", port, Methods(evm).call)
    server.start()
    try:
        yield DevChain(f"http://127.0.0.1:{server.port}")
    finally:
        server.close()
        evm.close()
