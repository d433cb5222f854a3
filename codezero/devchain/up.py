"""`codezero chain up`: runs a private chain until it is stopped."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codezero.config.multiaddr import is_loopback
from codezero.devchain import anvil, folder
from codezero.devchain.folder import FUNDS_WEI, ChainFolder, Engine
from codezero.errors import ChainError
from codezero.runtime import state
from codezero.runtime.console import Console

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
    engine: Engine | None = None
    """None takes the folder's; for a new one anvil if it is installed, else py-evm."""


DEFAULT_CHAIN_ID = 31337


def up(options: ChainOptions) -> int:
    """Runs a chain until SIGINT or SIGTERM, and returns the exit code. Prints `chain ID ready at URL` once it answers.

    Raises CodezeroError: the folder or port is in use or cannot be used, the engine is missing or ends by itself.
    """
    console, asked = Console(), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    with state.locked(options.folder, what="chain folder", holder="chain", setting="--folder") as lock:
        chain = choose(options)
        run = run_anvil if chain.engine is Engine.anvil else run_py_evm
        with run(chain, options, lock, console) as check:
            folder.save(chain)
            for line in introduction(chain, options.host):
                console.line(line)
            while not asked.wait(CHECK_S):
                check()
    console.line("chain stopped; the same command goes on where it was")
    return 0


def choose(options: ChainOptions) -> ChainFolder:
    """Returns the folder's chain, or a new one. Raises ChainError: the options contradict the folder, or the engine is
    not installed."""
    if not 0 < options.port < 65536:
        raise ChainError(f"--port {options.port} is not possible: use 1 to 65535")
    url = f"http://{anvil.reached(options.host)}:{options.port}"
    if (options.folder / "chain.json").exists():
        found = replace(folder.find(options.folder), rpc_url=url)
        for name, wanted, has in (
            ("--chain-id", options.chain_id, found.chain_id),
            ("--engine", options.engine and options.engine.value, found.engine.value),
        ):
            if wanted not in (None, has):
                raise ChainError(
                    f"{name} {wanted} is not possible: the chain in {options.folder} has {has}; leave the option out, "
                    "or give another --folder"
                )
        _check_installed(found.engine)
        return found
    chain_id = DEFAULT_CHAIN_ID if options.chain_id is None else options.chain_id
    if not 0 < chain_id < 2**53:
        raise ChainError(f"--chain-id {chain_id} is not possible: use 1 to {2**53 - 1}")
    engine = options.engine or (Engine.anvil if anvil.find_anvil() else Engine.py_evm)
    _check_installed(engine)
    return ChainFolder(path=options.folder, chain_id=chain_id, engine=engine, rpc_url=url)


def _check_installed(engine: Engine) -> None:
    if engine is Engine.anvil and anvil.find_anvil() is None:
        raise ChainError("anvil is not installed: npm install @foundry-rs/anvil, or put it on PATH")
    if engine is Engine.py_evm and importlib.util.find_spec("eth") is None:
        raise ChainError("py-evm is not installed: pip install 'codezero[chain]', or install anvil")


def introduction(chain: ChainFolder, host: str) -> list[str]:
    """Returns the lines that are printed once the chain runs."""
    lines = [
        f"chain {chain.chain_id} ready at {chain.rpc_url} ({chain.engine.value}, kept in {chain.path})",
        f"{folder.NUM_ACCOUNTS} accounts with {FUNDS_WEI // 10**18} ETH each: keys in {chain.path}/accounts.json",
        f"deploy the coordinator: codezero chain deploy --folder {chain.path}",
        "stop: Ctrl-C; the same command goes on where it was",
    ]
    if not is_loopback(host):
        power = (
            "can rewrite the chain and act for every account, since anvil lets them"
            if chain.engine is Engine.anvil
            else "can read it, send what they have signed, and keep it busy"
        )
        lines.append(f"warning: listening on {host}: whoever reaches port {chain.rpc_url.rpartition(':')[2]} {power}")
    return lines


Check = Callable[[], None]
"""Called every CHECK_S while the chain runs. Raises ChainError: the chain has ended."""


@contextmanager
def run_anvil(chain: ChainFolder, options: ChainOptions, lock: int, console: Console) -> Iterator[Check]:
    """Runs anvil, and yields its check."""
    program = anvil.find_anvil()
    assert program is not None
    if told := anvil.recover(chain):
        console.line(f"warning: {told}")
    process = anvil.Anvil(chain, program, options.host, options.port, [lock])
    # If this process is killed, anvil goes on and keeps the lock, so the lock file names it as the process to stop.
    os.ftruncate(lock, 0)
    os.write(lock, str(process.pid).encode())

    copied_at_s = time.monotonic()

    def check() -> None:
        nonlocal copied_at_s
        process.check()
        if time.monotonic() - copied_at_s >= COPY_S:
            anvil.keep_copy(chain)
            copied_at_s = time.monotonic()

    try:
        yield check
    finally:
        process.stop()


@contextmanager
def run_py_evm(chain: ChainFolder, options: ChainOptions, lock: int, console: Console) -> Iterator[Check]:
    """Runs a server on py-evm, and yields its check."""
    from codezero.devchain.evm import EvmChain
    from codezero.devchain.methods import Methods
    from codezero.devchain.server import RpcServer

    funded = {bytes.fromhex(account.address[2:]): FUNDS_WEI for account in chain.accounts()}
    evm = EvmChain(chain.path / "chain.db", chain.chain_id, funded)
    try:
        server = RpcServer(options.host, options.port, Methods(evm).call)
        server.start()
        try:
            yield lambda: None
        finally:
            server.close()
    finally:
        evm.close()
