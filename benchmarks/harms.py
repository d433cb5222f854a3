"""A machine with a chain and a swarm of its own, and what goes wrong on it: the place of `benchmarks.evening`.

The swarm is what `codezero swarm up` starts, on a small file system of its own, so that the disk can be full. It
submits rewards to a chain of `codezero chain up`. Its programs read the time of day through `clock.c`, which moves it,
and can reach neither a package index nor the hub.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from codezero.devchain import anvil
from codezero.devchain.coordinator import open_coordinator

NODES = ("node-1", "node-2", "node-3")
PROPOSER, VERIFIER, BOOTNODE = "proposer-1", "verifier", "bootnode"
REPORTS = dict.fromkeys(NODES, "rounds.jsonl") | {PROPOSER: "proposals.jsonl", VERIFIER: "cases.jsonl"}
"""The file in a program's logs that gets a line for each finished round or batch."""
DISK_MIB, CLOCK_JUMP_S, SUBMIT_S = 3072, 7200, 120
NOWHERE = "http://127.0.0.1:9"
CLOCK = Path(__file__).with_name("clock.c")
READY_S, STOP_S = 300.0, 90.0


class Machine:
    """The chain, the swarm and their files, in a folder that a later sitting goes on with."""

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        self._folder, self._settings = folder, settings
        self._chain, self._wallet, self._clock = folder / "chain", folder / "wallet.json", folder / "clock"
        self._disk = folder / "disk"
        self.swarm = self._disk / "swarm"
        self._filler = self._disk / "filler"
        self._environment = {
            **os.environ,
            **dict.fromkeys(("PIP_INDEX_URL", "UV_INDEX_URL", "HF_ENDPOINT"), NOWHERE),
            "CODEZERO_WALLET_PASSPHRASE": "of an evening",
        }
        self._port = anvil.free_port()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Machine:
        self._disk.mkdir(parents=True, exist_ok=True)
        self._mount()
        try:
            self._set_up()
        except BaseException:  # what runs by now would run on, on a disk that stays mounted
            self.__exit__()
            raise
        return self

    def _set_up(self) -> None:
        self.empty_disk()
        self.set_clock(0)
        subprocess.run(("cc", "-O2", "-shared", "-fPIC", "-o", self._folder / "clock.so", CLOCK), check=True)
        self.start_chain()
        self._codezero("chain", "deploy", "--folder", self._chain)
        if not self._wallet.exists():
            self._codezero("wallet", "create", "--keystore", self._wallet)
        address = self._codezero("wallet", "address", "--keystore", self._wallet).split()[-1]
        self._codezero("chain", "fund", address, "--folder", self._chain)
        self._start("tick", "chain", "tick", "--every", "60s", "--folder", self._chain)
        self.start_swarm()

    def __exit__(self, *_: object) -> None:
        self.empty_disk()
        self.set_clock(0)
        for name in ("swarm", "tick", "chain"):
            if name in self._running:
                self.stop(name)
        subprocess.run(("umount", self._disk), check=True)

    def start_chain(self) -> None:
        self._start("chain", "chain", "up", "--folder", self._chain, "--port", self._port, ready=" ready at ")

    def start_swarm(self) -> None:
        client, contract = open_coordinator(self._chain, None)
        ledger = (
            "ledger=wallet",
            f"ledger.rpc_url={client.rpc_url}",
            f"ledger.contract_address={contract.address}",
            f"ledger.chain_id={client.chain_id}",
            f"ledger.keystore={self._wallet}",
            f"ledger.submit_period_s={SUBMIT_S}",
        )
        options = ("--nodes", len(NODES), "--proposers", 1, "--with-verifier", "--folder", self.swarm)
        faked = {"LD_PRELOAD": str(self._folder / "clock.so"), "CLOCK_FILE": str(self._clock)}
        local = "swarm.listen=[/ip4/127.0.0.1/tcp/0]"
        self._start("swarm", "swarm", "up", *options, local, *ledger, *self._settings, more=faked, ready=" | ")

    def require_running(self) -> None:
        """Raises SystemExit: one of the commands has ended, though nobody has stopped it."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise SystemExit(f"{name} has ended with exit code {process.returncode}: see {self._log(name)}")

    def stop(self, name: str) -> None:
        """Asks a command to stop, and waits until it has."""
        process = self._running.pop(name)
        with suppress(psutil.NoSuchProcess):  # it may have ended
            root = psutil.Process(process.pid)
            for one in (root, *root.children(recursive=True)):
                one.resume()  # the evening may have been interrupted while a harm kept it frozen
        process.terminate()
        process.wait(STOP_S)

    def kill_launcher(self) -> None:
        """Kills the launcher, waits for the end of all that it had started, and starts the same command."""
        family = psutil.Process(self._running["swarm"].pid).children(recursive=True)
        process = self._running.pop("swarm")
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(family, STOP_S)
        if alive:
            raise SystemExit(f"{alive} outlived their launcher by {STOP_S:.0f} s")
        self.start_swarm()

    def freeze(self, name: str) -> None:
        for one in self.family(name):
            one.suspend()

    def thaw(self, name: str) -> None:
        for one in self.family(name):
            one.resume()

    def fill_disk(self) -> None:
        with suppress(OSError), self._filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))

    def empty_disk(self) -> None:
        self._filler.unlink(missing_ok=True)

    def set_clock(self, ahead_s: int) -> None:
        self._clock.write_text(f"{ahead_s}\n")

    def family(self, name: str) -> list[psutil.Process]:
        """Returns the process of a program, first, and its descendants; of `chain` or `swarm` the command's; empty if
        it does not run."""
        try:
            if name in self._running:
                top = psutil.Process(self._running[name].pid)
                return [top, *top.children(recursive=True)]
            for one in psutil.Process(self._running["swarm"].pid).children():
                own = [text for text in one.cmdline() if text.startswith(("state_dir=", "--identity="))]
                if f"{self.swarm}/{name}/" in "".join(own):
                    return [one, *one.children(recursive=True)]
        except (psutil.NoSuchProcess, KeyError):
            pass
        return []

    def kill(self, name: str, helper: str = "") -> None:
        """Kills a program's process, or the first of its descendants whose command line has the word."""
        family = self.family(name)
        found = [one for one in family[1:] if helper in " ".join(one.cmdline())] if helper else family
        if not found:
            raise SystemExit(f"{name} has no process {helper}: {[one.cmdline()[:4] for one in family]}")
        found[0].kill()

    def on_chain(self, peers: Sequence[str]) -> list[int]:
        """Returns the total reward of each peer."""
        client, contract = open_coordinator(self._chain, None)
        return list(client.read(contract, "getTotalRewards(string[])", list(peers)))

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _mount(self) -> None:
        image = self._folder / "disk.img"
        if not image.exists():
            with image.open("wb") as file:
                file.truncate(DISK_MIB << 20)
            subprocess.run(("mkfs.ext4", "-q", image), check=True)
        if not self._disk.is_mount():
            subprocess.run(("mount", "-o", "loop", image, self._disk), check=True)

    def _codezero(self, *arguments: object) -> str:
        command = (sys.executable, "-m", "codezero", *map(str, arguments))
        return subprocess.run(command, env=self._environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    def _start(self, name: str, *arguments: object, ready: str = "", more: dict[str, str] | None = None) -> None:
        """Starts a command, whose output goes to a file, and waits until the output has the words."""
        log = self._log(name)
        with log.open("ab") as output:
            self._running[name] = subprocess.Popen(
                (sys.executable, "-m", "codezero", *map(str, arguments)),
                env=self._environment | (more or {}),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            before = output.tell()
        until = time.monotonic() + READY_S
        while ready and ready not in log.read_bytes()[before:].decode(errors="replace"):
            if self._running[name].poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{' '.join(map(str, arguments[:2]))} is not ready: see {log}")
            time.sleep(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    harmed: Sequence[str]
    """The programs that have to finish a round or batch after it."""
    begin: Callable[[Machine], None]
    lasts_s: float = 0.0
    end: Callable[[Machine], None] = lambda _: None


def _killed(name: str, helper: str = "") -> Harm:
    return Harm(harmed=[NODES[0] if name == BOOTNODE else name], begin=partial(Machine.kill, name=name, helper=helper))


def _of_all(
    begin: Callable[[Machine], None], lasts_s: float = 0.0, end: Callable[[Machine], None] | None = None
) -> Harm:
    return Harm(harmed=NODES, begin=begin, lasts_s=lasts_s, end=end or (lambda _: None))


HARMS = {
    "a node killed": _killed("node-2"),
    "a node's p2p daemon killed": _killed("node-3", "p2pd"),
    "a node's worker process killed": _killed("node-2", "importlib"),
    "the proposer killed": _killed(PROPOSER),
    "the test writer killed": _killed(VERIFIER),
    "the bootnode killed": _killed(BOOTNODE),
    "the launcher killed, and started again": _of_all(Machine.kill_launcher),
    "a node frozen for two minutes": Harm(
        harmed=["node-3"],
        begin=partial(Machine.freeze, name="node-3"),
        lasts_s=120,
        end=partial(Machine.thaw, name="node-3"),
    ),
    "the disk full for two minutes": _of_all(Machine.fill_disk, 120, Machine.empty_disk),
    "the chain stopped for two minutes": _of_all(partial(Machine.stop, name="chain"), 120, Machine.start_chain),
    "the chain silent for two minutes": _of_all(
        partial(Machine.freeze, name="chain"), 120, partial(Machine.thaw, name="chain")
    ),
    "the clock two hours ahead for three minutes, then back": _of_all(
        partial(Machine.set_clock, ahead_s=CLOCK_JUMP_S), 180, partial(Machine.set_clock, ahead_s=0)
    ),
}
"""The harms by name. `node-1` is never killed alone, so that its memory can be followed."""
