"""Runs anvil as a child process, and keeps its state so that it can start again.

anvil has the chain in memory, and writes it to a file every few seconds and when asked to stop. If it is killed while
writing, the file is cut off, and it cannot start from that; so a whole copy is kept beside the file.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from codezero.devchain.folder import FUNDS_WEI, ChainFolder
from codezero.devchain.proxy import LOOPBACK
from codezero.errors import ChainError, told_as
from codezero.ledger.faults import RpcFault
from codezero.ledger.jsonrpc import JsonRpc
from codezero.runtime.files import stored

STATE_INTERVAL_S = 5
"""Seconds between two writes of the state by anvil."""
START_S, STOP_S = 60.0, 15.0
"""Longest waits in seconds for anvil to start and to end."""


def find_anvil() -> str | None:
    """Returns the path of the program, on PATH or as npm installs it in the current folder; None if there is none."""
    if found := shutil.which("anvil"):
        return found
    # The binary of this platform is found directly: npm 11 does not run the package's install script.
    for path in sorted(glob.glob("node_modules/@foundry-rs/anvil-*/bin/anvil")):
        if os.access(path, os.X_OK):
            return str(Path(path).absolute())
    return None


def require_anvil() -> str:
    """Returns the path of the program. Raises ChainError: it is not installed."""
    if found := find_anvil():
        return found
    raise ChainError(
        "anvil is not installed, which runs the chain: npm install @foundry-rs/anvil in this folder, or put it on PATH"
    )


def free_port() -> int:
    """Returns a TCP port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def command_line(program: str, folder: ChainFolder, host: str, port: int) -> list[str]:
    """Returns the command that runs anvil. It mines blocks only for transactions, and keeps these for good: with
    `--block-time 2` the file would grow by 80 MB a day without any, and with `--transaction-block-keeper 200` receipts
    and events would be gone after 200 blocks (both measured with anvil 1.7.1). It has no accounts, since the keys of
    anvil's own are publicly known, and lets no web page in a browser of this machine use it."""
    options: dict[str, object] = {
        "--host": LOOPBACK if host == "localhost" else host,
        "--port": port,
        "--chain-id": folder.chain_id,  # the state file does not have it
        "--accounts": 0,
        "--state": state_path(folder),
        "--state-interval": STATE_INTERVAL_S,
        "--prune-history": 100,
    }
    return [program, *(str(part) for option in options.items() for part in option), "--no-cors", "--silent"]


def state_path(folder: ChainFolder) -> Path:
    """Returns the path of anvil's state file."""
    return folder.path / "anvil.json"


def previous_path(folder: ChainFolder) -> Path:
    """Returns the path of the copy of the state file."""
    return folder.path / "anvil.previous.json"


def recover(folder: ChainFolder) -> str | None:
    """Replaces a state file that is cut off by its copy. Returns a warning for the user if it did.

    Raises ChainError: the copy cannot be used either.
    """
    state, previous = state_path(folder), previous_path(folder)
    if not state.exists() and not previous.exists():
        return None
    if stored(state, dict) is not None:
        return None
    if stored(previous, dict) is None:
        raise ChainError(
            f"the chain in {folder.path} cannot be read, neither {state.name} nor {previous.name}: restore one of "
            "them, or move both away to start from nothing"
        )
    with told_as(ChainError, f"cannot write {state}"):
        if state.exists():
            os.replace(state, state.with_suffix(".broken.json"))
        shutil.copyfile(previous, state)
    return f"{state} is cut off; starting from {previous.name}, so what was done after that is lost"


def keep_copy(folder: ChainFolder) -> None:
    """Copies the state file if it is whole and of another time than the copy, which gets the time of what it was made
    from. If that fails, the next call tries again."""
    state, previous = state_path(folder), previous_path(folder)
    temporary = previous.with_suffix(".tmp")
    with contextlib.suppress(OSError):
        written_ns = state.stat().st_mtime_ns
        if previous.exists() and previous.stat().st_mtime_ns == written_ns:
            return
        shutil.copyfile(state, temporary)  # copied before the check, since anvil may begin to write at any moment
        os.utime(temporary, ns=(written_ns, written_ns))
        if stored(temporary, dict) is not None:
            os.replace(temporary, previous)


class Anvil:
    """A running anvil, until `stop`. If it outlives this process, it keeps the folder locked."""

    def __init__(self, folder: ChainFolder, host: str, port: int, kept_open: Sequence[int]) -> None:
        """Starts anvil, waits until it answers, and gives the owner money. `kept_open` are descriptors that it
        inherits. Raises ChainError: it is not installed, or does not start or answer."""
        program = require_anvil()
        self._folder, self._log = folder, folder.path / "anvil.log"
        try:
            with told_as(ChainError, f"cannot write {self._log}"):
                log = self._log.open("wb")
            with log:
                self._process = subprocess.Popen(
                    command_line(program, folder, host, port),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=tuple(kept_open),
                    start_new_session=True,  # Ctrl-C reaches this process alone, which asks anvil to stop
                )
        except OSError as error:
            raise ChainError(f"cannot start {program}: {error.strerror}; install it again") from error
        self._url = f"http://{reached(host)}:{port}"
        self._rpc = JsonRpc(self._url, setting="--port", retries=0)
        try:
            self._wait_until_it_answers()
            self._fund()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raises ChainError: anvil has ended by itself."""
        code = self._process.poll()
        if code is not None:
            tail = self._log.read_bytes()[-300:].decode("utf-8", "replace").strip().replace("\n", " ")
            raise ChainError(f"anvil ended with exit code {code}: {tail or 'it says nothing'}; see {self._log}")

    def stop(self) -> None:
        """Makes anvil write its state and end."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        keep_copy(self._folder)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            self.check()
            with contextlib.suppress(RpcFault):
                if self._ask("eth_chainId") == hex(self._folder.chain_id):
                    return
            if time.monotonic() > deadline:
                raise ChainError(f"anvil does not answer at {self._url} within {START_S:.0f} s: see {self._log}")
            time.sleep(0.05)

    def _fund(self) -> None:
        address = self._folder.owner().address
        if self._ask("eth_getBalance", address, "latest") == "0x0":
            self._ask("anvil_setBalance", address, hex(FUNDS_WEI))

    def _ask(self, method: str, *params: str) -> object:
        (answer,) = self._rpc.ask([(method, list(params))])
        return answer


def reached(host: str) -> str:
    """Returns the host by which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
