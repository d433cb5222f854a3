"""Hosts with an address each: network namespaces at one bridge, on a machine that lets us make them."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = f"cz{os.getpid() % 100_000}"
NETWORK = "10.77.0"
SCRIPT = Path(__file__).with_name("netns_node.py")
SETUP_S = 10


class NoNamespaces(Exception):
    """This machine does not let us make them."""


def ip(*arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=SETUP_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoNamespaces(str(error)) from error
    if done.returncode != 0:
        raise NoNamespaces(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@dataclass
class Host:
    number: int
    hub: str

    @property
    def namespace(self) -> str:
        return f"{PREFIX}h{self.number}"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number}"

    def is_connected(self, yes: bool) -> None:
        """Plugs its cable in, or out."""
        ip("-n", self.hub, "link", "set", f"port{self.number}", "up" if yes else "down")


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many of them. Raises NoNamespaces."""
    hub = f"{PREFIX}hub"
    with ExitStack() as stack:

        def namespace(name: str) -> None:
            ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            ip("-n", name, "link", "set", "lo", "up")

        namespace(hub)
        ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", hub, "link", "set", "bridge", "up")
        made = [Host(number + 1, hub) for number in range(count)]
        for host in made:
            namespace(host.namespace)
            port = f"port{host.number}"
            peer = ["peer", "name", "eth0", "netns", host.namespace]
            ip("-n", hub, "link", "add", port, "type", "veth", *peer)
            ip("-n", hub, "link", "set", port, "master", "bridge", "up")
            ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
        yield made


class HostNode:
    """A running netns_node.py."""

    def __init__(self, host: Host, key: Path, *bootnodes: str) -> None:
        self.host = host
        command = [sys.executable, str(SCRIPT), str(key), f"/ip4/{host.address}/tcp/4001", *bootnodes]
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", host.namespace, *command],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])},
            start_new_session=True,
        )
        self._lines: queue.Queue[dict] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        started = self._lines.get(timeout=120)
        self.peer_id, self.address = started["peer_id"], started["address"]

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def rounds(self) -> Iterator[dict]:
        """Those that end from now on, for two minutes."""
        while not self._lines.empty():
            self._lines.get()
        end_s = time.monotonic() + 120.0
        while time.monotonic() < end_s:
            assert self._process.poll() is None, "the node has ended"
            try:
                yield self._lines.get(timeout=1)
            except queue.Empty:
                continue

    def hears(self, *others: HostNode) -> dict[str, str]:
        """Waits until it has had groups of all of these; their network addresses."""
        wanted = {other.peer_id for other in others}
        heard: dict[str, str] = {}
        for found in self.rounds():
            heard |= {peer_id: address for peer_id, address, _ in found["external"]}
            if wanted <= heard.keys():
                return {other.host.address: heard[other.peer_id] for other in others}
        raise AssertionError(f"{self.host.address} heard {heard} only")

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
