"""`codezero chain up`: runs a private chain on anvil until it is stopped."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codezero.config import checkout
from codezero.config.multiaddr import is_loopback
from codezero.devchain import anvil, folder
from codezero.devchain.folder import FUNDS_WEI, ChainFolder
from codezero.devchain.proxy import LOOPBACK, Proxy
from codezero.errors import ChainError
from codezero.ledger.account import ETHER
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.runtime.stop import on_stop

CHECK_S = 1.0
"""Seconds between two checks that the chain still runs."""
COPY_S = 30.0
"""Seconds between two copies of anvil's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOptions:
    """The options of the command."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8545
    chain_id: int | None = None
    """None takes the folder's, or 31337 for a new one. It should not be a public network's, on which transactions of
    this chain could be replayed."""


DEFAULT_CHAIN_ID = 31337


def up(options: ChainOptions) -> int:
    """Runs a chain until a signal asks it to stop; returns the exit code. Prints `chain ID ready at URL` once it
    answers.

    Raises CodezeroError: the folder or port is in use or cannot be used, or anvil is missing or ends by itself.
    """
    console, asked = Console(), threading.Event()
    on_stop(lambda *_: asked.set())
    with state.locked(options.folder, what="chain folder", holder="chain", setting="--folder") as lock:
        chain = choose(options)
        with run(chain, options, lock, console) as check:
            folder.save(chain)
            for line in introduction(chain, options.host):
                console.line(line)
            while not asked.wait(CHECK_S):
                check()
    console.line("chain stopped; the same command continues where it stopped")
    return 0


def choose(options: ChainOptions) -> ChainFolder:
    """Returns the folder's chain, or a new one. Raises ChainError: the options contradict the folder, or its chain is
    not anvil's."""
    if not 0 < options.port < 65536:
        raise ChainError(f"--port {options.port} is not possible: use 1 to 65535")
    url = f"http://{anvil.reached(options.host)}:{options.port}"
    if (options.folder / "chain.json").exists():
        found = replace(folder.find(options.folder), rpc_url=url)
        if options.chain_id not in (None, found.chain_id):
            raise ChainError(
                f"--chain-id {options.chain_id} is not possible: the chain in {options.folder} has {found.chain_id}; "
                "leave the option out, or give another --folder"
            )
        if (options.folder / "chain.db").exists():
            raise ChainError(
                f"the chain in {options.folder} is one of py-evm, which codezero 0.1.0 could run and this version "
                "cannot: give another --folder for a new chain, or run this one with codezero 0.1.0"
            )
        return found
    chain_id = DEFAULT_CHAIN_ID if options.chain_id is None else options.chain_id
    if not 0 < chain_id < 2**53:
        raise ChainError(f"--chain-id {chain_id} is not possible: use 1 to {2**53 - 1}")
    return ChainFolder(path=options.folder, chain_id=chain_id, rpc_url=url)


def introduction(chain: ChainFolder, host: str) -> list[str]:
    """Returns the lines that are printed once the chain runs."""
    lines = [
        f"chain {chain.chain_id} ready at {chain.rpc_url} (kept in {chain.path})",
        f"its owner has {FUNDS_WEI // ETHER} ETH: the key is in {chain.path}/accounts.json",
        f"deploy the coordinator: {checkout.command('chain', 'deploy', '--folder', chain.path)}",
        "stop: Ctrl-C; the same command continues where it stopped",
    ]
    if not is_loopback(host):
        lines.append(
            f"warning: listening on {host}: whoever reaches port {chain.rpc_url.rpartition(':')[2]} can read it, send "
            "what they have signed, and keep it busy; let a firewall admit your machines only"
        )
    return lines


Check = Callable[[], None]
"""Called every CHECK_S while the chain runs. Raises ChainError: the chain has ended."""


@contextmanager
def run(chain: ChainFolder, options: ChainOptions, lock: int, console: Console) -> Iterator[Check]:
    """Runs anvil, behind a proxy where other machines can reach it, and yields its check."""
    if told := anvil.recover(chain):
        console.line(f"warning: {told}")
    with ExitStack() as stack:
        if is_loopback(options.host):
            process = anvil.Anvil(chain, options.host, options.port, [lock])
            stack.callback(process.stop)
        else:
            proxy = stack.enter_context(Proxy(options.host, options.port))
            port = anvil.free_port()
            process = anvil.Anvil(chain, LOOPBACK, port, [lock])
            stack.callback(process.stop)
            proxy.start(port)
            stack.callback(proxy.shutdown)
        # If this process is killed, anvil keeps the lock, so the lock file names it as the process to stop.
        os.ftruncate(lock, 0)
        os.write(lock, str(process.pid).encode())
        copied_at_s = time.monotonic()

        def check() -> None:
            nonlocal copied_at_s
            process.check()
            if time.monotonic() - copied_at_s >= COPY_S:
                anvil.keep_copy(chain)
                copied_at_s = time.monotonic()

        yield check
