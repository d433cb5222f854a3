"""The check of each node that is dialled to join the swarm: its name resolves, its port is open, it speaks libp2p."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from codezero.config import LedgerKind, Network
from codezero.config.multiaddr import Multiaddr
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, info, ok, warning

CONNECT_S = 4.0
MOST = 32
"""The largest number of addresses that are dialled."""
HELLO = b"\x13/multistream/1.0.0\n"
"""The first bytes that each side of a libp2p connection sends (https://github.com/multiformats/multistream-select)."""


def check(case: Case) -> Iterator[Finding]:
    swarm = case.config.swarm
    if swarm.network is Network.none:
        yield info("swarm", "none: this node trains alone (join one with swarm=invite.yaml)")
        return
    if not swarm.bootnodes:
        named = case.config.ledger.kind is not LedgerKind.local and case.config.ledger.bootnodes
        found = "no bootnodes but those of the contract" if named else "no bootnodes: this node hosts a new swarm"
        yield info("swarm", found)
    else:
        yield from dialled(swarm.bootnodes, "swarm.bootnodes")
    known = _remembered(case)
    if known:
        found = f"{known} peer{'s' * (known != 1)} met before {'is' if known == 1 else 'are'} remembered"
        yield info("swarm", found, "the node dials them where no bootnode answers")


def dialled(addresses: Sequence[str], source: str) -> Iterator[Finding]:
    """Dials the addresses at once and yields a finding for each, and one more if none answers."""
    faults: dict[str, str | None] = {}
    threads = [
        threading.Thread(target=lambda one=text: faults.update({one: why_not(one)}), daemon=True)
        for text in addresses[:MOST]
    ]
    deadline = time.monotonic() + 2 * CONNECT_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    told = dict(faults)
    for text in addresses[:MOST]:
        fault = told.get(text, "no answer in time: the search for its name hangs")
        if fault is None:
            yield ok("bootnode", f"{text} answers")
        else:
            means = "the node joins through the others" if None in told.values() else ""
            yield warning("bootnode", f"{text}: {fault}", means, f"see that it runs, and that {source} has its address")
    if None not in told.values():
        count = len(addresses[:MOST])
        yield warning(
            "swarm",
            f"none of {count} bootnode{'s' * (count != 1)} answers",
            "the node trains alone, keeps dialling, and says so in every round's line",
            "ask whoever hosts the swarm for a new invitation; see that no firewall keeps outgoing connections back",
        )


def why_not(text: str) -> str | None:
    """Returns why a node cannot join the swarm through this address, or None if a libp2p host answers there. The peer
    id is not checked: that happens when a node joins."""
    try:
        address = Multiaddr.parse(text)
    except ValueError as fault:
        return f"it cannot be dialled: {fault}"
    if address.transport == "udp":
        return "it is dialled over UDP, which is not tried here"
    try:
        with closing(socket.create_connection((address.host, address.port), timeout=CONNECT_S)) as connection:
            if "/ws" in address.over:
                return None  # a WebSocket begins with HTTP, so HELLO would not be answered
            connection.sendall(HELLO)
            return None if _said(connection) else "something else than libp2p answers there"
    except socket.gaierror:
        return f"the name {address.host} is not found (DNS)"
    except ConnectionRefusedError:
        return f"nothing listens on port {address.port}" + _whose(address)
    except TimeoutError:
        return f"no answer within {CONNECT_S:.0f} s: it is down, or a firewall or router lets nobody in" + _whose(
            address
        )
    except OSError as fault:
        return f"{fault.strerror or fault}" + _whose(address)


def _said(connection: socket.socket) -> bool:
    said = b""
    while len(said) < len(HELLO):
        more = connection.recv(len(HELLO) - len(said))
        if not more:
            break
        said += more
    return said == HELLO


def _whose(address: Multiaddr) -> str:
    if address.ip is None or address.ip.is_global:
        return ""
    where = "this machine itself" if address.ip.is_loopback else "a private network"
    return f"; the address is of {where}, so it is right only there"


def _remembered(case: Case) -> int:
    try:
        with (case.state_dir / "peers.json").open("rb") as file:
            found = json.loads(file.read(1 << 16))
    except (OSError, ValueError, RecursionError):
        return 0
    return len(found) if isinstance(found, dict) else 0
