"""The p2p daemon: libp2p in a process of its own, which hivemind starts and controls."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil
from hivemind.p2p import P2P, P2PDaemonError, PeerID
from hivemind.utils.multiaddr import Multiaddr

from codezero.config import Reach, SwarmConfig
from codezero.errors import NetworkError
from codezero.network.dht import confined
from codezero.runtime.serving import own_addresses

CONNECT_TIMEOUT_S = 10.0
"""Longest wait in seconds for a connection."""
DAEMON_TIMEOUT_S = 5.0
"""Seconds without an answer, or an end, after which a daemon counts as dead."""
DAEMON_ERRORS = (P2PDaemonError, OSError, asyncio.IncompleteReadError, asyncio.TimeoutError)
"""The errors of calls to a dead or dying daemon, or to a peer that it cannot reach."""


class _Confined(P2P):  # type: ignore[misc]  # hivemind has no types
    """hivemind's client, whose daemon is started through `confined`."""

    @staticmethod
    def _make_process_args(*args: Any, **kwargs: Any) -> list[str]:
        """Returns the command line of the daemon; hivemind has no public way to prefix it."""
        return confined.command(*P2P._make_process_args(*args, **kwargs))


async def start(config: SwarmConfig, reach: Reach, listen: Sequence[str], key_file: Path) -> P2P:
    """Starts a daemon without bootnodes, which are dialled later: an unreachable one given here would end it.

    Raises NetworkError: it does not start.
    """
    relayed = reach is Reach.relay
    starting = _Confined.create(
        host_maddrs=list(listen),
        announce_maddrs=list(config.announce) or None,
        identity_path=str(key_file),
        startup_timeout=config.startup_timeout_s,
        dht_mode="client" if reach is Reach.client else "server",
        nat_port_map=False,  # no node opens a port of its router unasked
        use_auto_relay=relayed,
        trusted_relays=list(config.bootnodes) if relayed else None,
        force_reachability="private" if relayed else None,
    )
    try:
        # hivemind's timeout covers only the daemon's first output, and not the requests that follow.
        return await asyncio.wait_for(starting, config.startup_timeout_s + DAEMON_TIMEOUT_S)
    except (*DAEMON_ERRORS, ValueError) as error:
        end_strays(key_file)
        raise NetworkError(
            f"the p2p daemon does not start on {', '.join(listen)}: {error or 'no answer'}; is the port taken? give "
            "another one with swarm.listen=[/ip4/0.0.0.0/tcp/0], or more time with swarm.startup_timeout_s"
        ) from error


def end_strays(key_file: Path) -> None:
    """Kills this process's daemons of an identity.

    If a start or stop is cancelled, or a start takes too long, hivemind leaves its daemon to the garbage collector, so
    that it would go on running on the port that the next one needs.
    """
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            if f"-id={key_file}" in child.cmdline():
                child.kill()


async def stop(p2p: P2P) -> None:
    """Ends a daemon, also one that is dead already or hangs."""
    try:
        await asyncio.wait_for(p2p.shutdown(), DAEMON_TIMEOUT_S)
    except DAEMON_ERRORS:
        with contextlib.suppress(ProcessLookupError):
            p2p._child.kill()
    with contextlib.suppress(OSError, TypeError):  # of one that has died hivemind leaves the socket
        os.remove(p2p.daemon_listen_maddr["unix"])


def is_running(p2p: P2P) -> bool:
    """Returns True if the daemon runs and hivemind still reads its answers.

    An answer that comes just as its call times out ends the task in which hivemind reads them (InvalidStateError).
    After that no call gets an answer, and hivemind does not notice.
    """
    control = p2p._client.control
    tasks = (control._read_task, control._write_task)
    return p2p._child.returncode is None and not any(task.done() for task in tasks)


def is_drained(p2p: P2P) -> bool:
    """Returns True if the daemon has taken all messages that this node has for it; hivemind keeps any number."""
    return bool(p2p._client.control._pending_messages.empty())


def forget_cancelled(p2p: P2P) -> None:
    """Deletes the tasks of finished calls: hivemind keeps those that the caller has cancelled, maybe thousands."""
    tasks = p2p._client.control._handler_tasks
    for call_id in [call_id for call_id, task in tasks.items() if task.done()]:
        del tasks[call_id]


async def connect(p2p: P2P, address: str) -> PeerID:
    """Dials a multiaddress that ends in /p2p/<peer id>. Raises one of DAEMON_ERRORS or ValueError: no connection."""
    where, _, peer = address.rpartition("/p2p/")
    peer_id = PeerID.from_base58(peer)
    # P2P has no public way to connect after the start; its client has.
    await asyncio.wait_for(p2p._client.connect(peer_id, [Multiaddr(where)] if where else []), CONNECT_TIMEOUT_S)
    return peer_id


async def addresses(p2p: P2P) -> list[str]:
    """Returns the full multiaddresses at which this node can be dialled. Raises one of DAEMON_ERRORS."""
    try:
        found = await asyncio.wait_for(p2p.get_visible_maddrs(latest=True), DAEMON_TIMEOUT_S)
    except ValueError:  # it has none
        return []
    return [str(address) for address in found]


def with_ports(listen: Sequence[str], visible: Sequence[str]) -> list[str]:
    """Returns the addresses to listen on with port 0 replaced by the port that was chosen, so that the next daemon
    listens where this one did."""
    fixed = []
    for address in listen:
        kind = "udp" if "/udp/" in address else "tcp"
        alike = [found for found in visible if found.startswith(address[:5])]  # /ip4/ or /ip6/, with a port each
        ports = [port for found in alike for port in [part(found, kind)] if port is not None]
        fixed.append(address.replace(f"/{kind}/0", f"/{kind}/{ports[0]}", 1) if ports else address)
    return fixed


def choose_reach(config: SwarmConfig, addresses: Iterable[str] | None = None) -> Reach:
    """Returns `swarm.reach`. For `auto` it is `client` if the bootnodes are on the internet and none of this machine's
    `addresses` (default: its own) of a kind that it listens at is, which means that a router in between admits no
    connections; else `server`."""
    if config.reach is not Reach.auto:
        return config.reach
    if config.announce or all(_is_local(address) for address in config.bootnodes):
        return Reach.server
    own = [*own_addresses(socket.AF_INET), *own_addresses(socket.AF_INET6)] if addresses is None else addresses
    versions = {6 if part(address, "ip6") else 4 for address in config.listen}
    is_there = any(_is_global(one) and ipaddress.ip_address(one).version in versions for one in own)
    return Reach.server if is_there else Reach.client


def _is_local(multiaddress: str) -> bool:
    """Returns True if an address is on this machine or its network; a DNS name counts as one on the internet."""
    host = part(multiaddress, "ip4") or part(multiaddress, "ip6")
    return host is not None and not _is_global(host)


def _is_global(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a hardware address of an interface, or no address at all
        return False
    return address.is_global


def part(multiaddress: str, name: str) -> str | None:
    """Returns the value of a protocol in a multiaddress; None if it has none."""
    parts = multiaddress.split("/")
    return parts[parts.index(name) + 1] if name in parts[:-1] else None
