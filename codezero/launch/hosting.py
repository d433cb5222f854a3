"""Describes a swarm hosted on this machine to others: its bootnode's port and addresses, and its invitation file."""

from __future__ import annotations

import os
import random
import shlex
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codezero.config import NodeConfig, TasksConfig, checkout, swarm_file
from codezero.config.multiaddr import Multiaddr
from codezero.config.swarm_file import MAX_BOOTNODES, SwarmFile, SwarmTasks
from codezero.errors import ConfigError, NetworkError
from codezero.runtime.console import Console
from codezero.runtime.serving import own_addresses

PORTS = range(20000, 30000)
"""The ports that a new bootnode's is drawn from, below those that systems assign to outgoing connections."""


def swarm_path(folder: Path) -> Path:
    """Returns the path of the swarm file in a folder. Its first address is the one that nodes on this machine use."""
    return folder / "swarm.yaml"


def read_swarm(folder: Path) -> SwarmFile | None:
    """Returns the swarm that was made in the folder, or None for a new one, or if the folder cannot be read. Raises
    ConfigError: its file is damaged."""
    return swarm_file.read(swarm_path(folder)) if os.path.exists(swarm_path(folder)) else None


def parse(key: str, text: str) -> Multiaddr:
    """Parses an address that the user gave as the setting or option `key`. Raises ConfigError: it is not valid."""
    try:
        return Multiaddr.parse(text)
    except ValueError as error:
        raise ConfigError(f"{key}={text} is not an address: {error}") from error


def choose_port(wanted: int | None, listen: Multiaddr, before: SwarmFile | None, console: Console) -> int:
    """Returns the wanted port, else the one that the swarm had before, else a free one.

    Raises NetworkError: the wanted port cannot be used, or none can.
    """
    if wanted is not None:
        check_free(replace(listen, port=wanted))
        return wanted
    if before is not None:
        port = Multiaddr.parse(before.bootnodes[0]).port
        why = why_taken(replace(listen, port=port))
        if why is None:
            return port
        console.line(f"{why}, as this swarm did before: it takes another one now")
    for port in random.sample(PORTS, 100):
        if why_taken(replace(listen, port=port)) is None:
            return port
    raise NetworkError(f"no port from {PORTS[0]} to {PORTS[-1]} can be used on {listen.host}: check swarm.listen")


def check_free(listen: Multiaddr) -> None:
    """Raises NetworkError: this machine cannot listen on the address, or another program does already."""
    why = why_taken(listen)
    if why is not None:
        raise NetworkError(f"{why}: give another one")


def why_taken(listen: Multiaddr) -> str | None:
    """Returns why this machine cannot listen on the address, or None if it can. Host names are not resolved.

    The p2p daemon would start beside another listener (it sets SO_REUSEPORT), and share its connections at random.
    """
    if listen.ip is None:
        return None
    family = socket.AF_INET6 if listen.ip.version == 6 else socket.AF_INET
    kind = socket.SOCK_DGRAM if listen.transport == "udp" else socket.SOCK_STREAM
    try:
        with socket.socket(family, kind) as probe:  # which fails where there is no IPv6
            if kind is socket.SOCK_STREAM:  # connections that have just ended are no obstacle
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((listen.host, listen.port))
    except OSError as error:
        return f"cannot listen on {listen.transport} port {listen.port} of {listen.host} ({error.strerror})"
    return None


def describe(config: NodeConfig, port: int, peer_id: str, announce: Sequence[Multiaddr]) -> SwarmFile:
    """Returns the swarm file of a configuration whose bootnode is this peer on this port. Raises ConfigError:
    swarm.listen has an address that is not valid."""
    listen = [replace(parse("swarm.listen", text), port=port) for text in config.swarm.listen]
    addresses = [replace(at, host=host, peer=peer_id) for at in listen for host in _hosts(at)]
    addresses[1:1] = [replace(at, peer=peer_id) for at in announce]
    return SwarmFile(
        name=config.swarm.name,
        network=config.swarm.network,
        bootnodes=tuple(map(str, addresses[:MAX_BOOTNODES])),
        ledger=config.ledger.kind,
        num_generations=config.rollout.num_generations,
        tasks=_swarm_tasks(config.tasks),
    )


def _swarm_tasks(tasks: TasksConfig) -> SwarmTasks | None:
    """Returns the choice with the same datasets; None if there is none, or an environment makes tasks."""
    drawn = {one for one in ("builtin", "code_contests", "mbpp") if getattr(tasks, one).weight > 0}
    if tasks.modules:
        return None
    if drawn == {"code_contests", "mbpp"}:
        return SwarmTasks.auto
    return SwarmTasks(*drawn) if len(drawn) == 1 else None


def _hosts(listen: Multiaddr) -> list[str]:
    """Returns the hosts under which a listener is reached. One on all interfaces has loopback first, then the addresses
    that other machines may use."""
    if listen.ip is None or not listen.ip.is_unspecified:
        return [listen.host]
    family, loopback = (socket.AF_INET6, "::1") if listen.ip.version == 6 else (socket.AF_INET, "127.0.0.1")
    return [loopback, *own_addresses(family)]


def how_to_join(path: Path) -> str:
    """Returns the commands with which another machine joins by its copy of a swarm file."""
    return f"{checkout.START} --join {shlex.quote(path.name)}, or {checkout.command('run', f'swarm={path.name}')}"


def invite(folder: Path, out: Path | None, host: str | None, console: Console) -> None:
    """Writes the swarm file for other machines and prints what to do with it.

    Raises ConfigError: there is no swarm in the folder, or it has no address that other machines could use.
    """
    swarm = read_swarm(folder)
    if swarm is None:
        starts = checkout.command("swarm", "up", "--folder", folder)
        raise ConfigError(f"there is no swarm in {folder}: start one with {starts}")
    own = [Multiaddr.parse(text) for text in swarm.bootnodes]
    if host is not None:
        try:
            reached = [own[0].at(host)]
        except ValueError as error:
            raise ConfigError(f"--address {host} is not possible: give an IP address or a host name") from error
    else:
        reached = [address for address in own if address.ip is None or not address.ip.is_loopback]
    if not reached:
        raise ConfigError(
            f"the swarm in {folder} is reached from this machine only: start it where there is a network, with "
            "'swarm.listen=[/ip4/0.0.0.0/tcp/0]', or name the address that others use with --address HOST"
        )
    path = out or folder / "invite.yaml"
    swarm_file.write(path, replace(swarm, bootnodes=tuple(map(str, reached))))
    console.line(f"{path} invites to the swarm '{swarm.name}' through")
    for address in reached:
        console.line(f"  {address}")
    console.line(f"copy it to another machine and run there: {how_to_join(path)}")
    console.line(f"that machine must be able to reach port {reached[0].port} of this one while the swarm is up")
    if all(address.ip is not None and address.ip.is_private for address in reached):
        console.line(
            "these addresses work inside this network; for machines elsewhere forward the port to this machine "
            "and make the file with --address HOST, the address under which this network is known"
        )
