"""The p2p daemon: libp2p in a process of its own, which hivemind starts and talks to."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil
from hivemind.p2p import P2P, P2PDaemonError, PeerID
from hivemind.utils.multiaddr import Multiaddr

from codezero.config import Reach, SwarmConfig
from codezero.errors import NetworkError
from codezero.network.dht import confined

CONNECT_TIMEOUT_S = 10.0
DAEMON_TIMEOUT_S = 5.0
"""A daemon on this machine that takes longer to answer, or to end, is as good as dead."""
DAEMON_ERRORS = (P2PDaemonError, OSError, asyncio.IncompleteReadError, asyncio.TimeoutError)
"""What a dead or dying daemon, or an unreachable peer behind it, makes of a call."""


class _Confined(P2P):  # type: ignore[misc]  # hivemind has no types
    """hivemind's daemon, started by way of `confined`."""

    @staticmethod
    def _make_process_args(*args: Any, **kwargs: Any) -> list[str]:
        """The command line of the daemon; there is no public way to put anything before it."""
        return confined.command(*P2P._make_process_args(*args, **kwargs))


async def start(config: SwarmConfig, reach: Reach, listen: Sequence[str], key_file: Path) -> P2P:
    """A running daemon that knows nobody. Bootnodes are dialled later: given here, an unreachable one ends it.

    Raises NetworkError: it does not start.
    """
    relayed = reach is Reach.relay
    starting = _Confined.create(
        host_maddrs=list(listen),
        announce_maddrs=list(config.announce) or None,
        identity_path=str(key_file),
        startup_timeout=config.startup_timeout_s,
        dht_mode="client" if reach is Reach.client else "server",
        nat_port_map=reach is Reach.server and not all(_is_local(address) for address in listen),
        use_auto_relay=relayed,
        trusted_relays=list(config.bootnodes) if relayed else None,
        force_reachability="private" if relayed else None,
    )
    try:
        # hivemind's own timeout ends with the daemon's first words, and the talk that follows has none
        return await asyncio.wait_for(starting, config.startup_timeout_s + DAEMON_TIMEOUT_S)
    except (*DAEMON_ERRORS, ValueError) as error:
        end_strays(key_file)
        raise NetworkError(
            f"the p2p daemon does not start on {', '.join(listen)}: {error or 'no answer'}; is the port taken? give "
            "another one with swarm.listen=[/ip4/0.0.0.0/tcp/0], or more time with swarm.startup_timeout_s"
        ) from error


def end_strays(key_file: Path) -> None:
    """Kills this process's daemons of an identity.

    Where a start or a stop is cancelled, or a start takes too long, hivemind leaves its daemon to the garbage
    collector: it would live on, on the port that the next one needs.
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


def is_running(p2p: P2P) -> bool:
    """Whether the daemon lives and hivemind still talks with it.

    A late answer that meets a call just timed out ends the task in which hivemind reads them (InvalidStateError). From
    then on no call gets an answer, and nobody else notices.
    """
    control = p2p._client.control
    tasks = (control._read_task, control._write_task)
    return p2p._child.returncode is None and not any(task.done() for task in tasks)


def forget_cancelled(p2p: P2P) -> None:
    """hivemind keeps the task of every call that its caller has taken back; a peer may make and take back thousands."""
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
    """The full multiaddresses under which this node can be dialled. Raises one of DAEMON_ERRORS."""
    try:
        found = await asyncio.wait_for(p2p.get_visible_maddrs(latest=True), DAEMON_TIMEOUT_S)
    except ValueError:  # it has none
        return []
    return [str(address) for address in found]


def with_ports(listen: Sequence[str], visible: Sequence[str]) -> list[str]:
    """The addresses to listen on with free ports (0) replaced by those that were taken, so that a daemon started anew
    is found where the old one was."""
    fixed = []
    for address in listen:
        kind = "udp" if "/udp/" in address else "tcp"
        alike = [found for found in visible if found.startswith(address[:5])]  # /ip4/ or /ip6/, with a port each
        ports = [port for found in alike for port in [part(found, kind)] if port is not None]
        fixed.append(address.replace(f"/{kind}/0", f"/{kind}/{ports[0]}", 1) if ports else address)
    return fixed


def choose_reach(config: SwarmConfig, own_addresses: Iterable[str] | None = None) -> Reach:
    """`swarm.reach`, or for auto: client where the bootnodes are on the internet and none of our addresses is, which
    means a router in between that lets nobody in; else server."""
    if config.reach is not Reach.auto:
        return config.reach
    if config.announce or all(_is_local(address) for address in config.bootnodes):
        return Reach.server
    own = _interface_addresses() if own_addresses is None else own_addresses
    return Reach.server if any(_is_global(address) for address in own) else Reach.client


def _interface_addresses() -> list[str]:
    found = [address.address for interface in psutil.net_if_addrs().values() for address in interface]
    return [address.partition("%")[0] for address in found]


def _is_local(multiaddress: str) -> bool:
    """Whether an address is of this machine or its own network; a DNS name is taken to be of the internet."""
    host = part(multiaddress, "ip4") or part(multiaddress, "ip6")
    return host is not None and not _is_global(host)


def _is_global(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a hardware address of an interface, or no address at all
        return False
    return address.is_global


def part(multiaddress: str, name: str) -> str | None:
    """The value after a protocol's name in a multiaddress."""
    parts = multiaddress.split("/")
    return parts[parts.index(name) + 1] if name in parts[:-1] else None
