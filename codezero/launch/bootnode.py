"""Runs a bootnode, through which a swarm's nodes find each other. It keeps an address and an identity, and does not
train."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from codezero.config import LedgerKind, Network, Reach, SwarmConfig, checkout, swarm_file
from codezero.config.load import load_config
from codezero.config.multiaddr import Multiaddr
from codezero.config.swarm_file import SwarmFile
from codezero.launch import hosting
from codezero.network.dht.link import SwarmLink
from codezero.network.join import rules_of, take_identity
from codezero.runtime.amounts import counted
from codezero.runtime.console import Console
from codezero.runtime.stop import on_stop

STATUS_S = 10.0
"""Seconds between two counts of the nodes in reach; a line is printed when the count has changed."""


def run_bootnode(
    listen: Sequence[str], announce: Sequence[str], identity_path: Path, network: Network, invite: Path | None = None
) -> int:
    """Serves swarms of one wire format until a signal asks it to stop; returns the exit code.

    Prints a line `bootnode PEER_ID listening on MULTIADDRESS` for each address once it can be used; then `invite` gets
    a swarm file, for nodes whose swarm has the default name and group size.

    Raises ValueError: a text is not a multiaddress. IdentityError: the key cannot be used. NetworkError: it cannot
    listen on an address. ConfigError: the swarm file cannot be written.
    """
    for text in listen:
        hosting.check_free(Multiaddr.parse(text))
    console, asked = Console(), threading.Event()
    config = SwarmConfig(
        network=network,
        listen=list(listen),
        announce=list(announce),
        reach=Reach.server,
        identity_path=str(identity_path),
    )
    on_stop(lambda *_: asked.set())
    with ExitStack() as stack:
        _, key_file = take_identity(config, console, stack)
        link = SwarmLink(config, key_file, identity_path.with_suffix(".peers.json"), rules_of(network))
        stack.callback(link.close)
        link.start()
        for address in link.addresses:
            console.line(f"bootnode {link.peer_id} listening on {address}")
        if invite is None:
            console.line(
                f"join with: {checkout.COMMAND} run swarm={network.value} 'swarm.bootnodes=[ADDRESS]', one of these"
            )
        else:
            swarm_file.write(invite, _swarm(config, link.peer_id, link.addresses))
            console.line(f"copy {invite} to another machine and run there: {hosting.how_to_join(invite)}")
        seen = 0
        while not asked.wait(STATUS_S):
            link.check()
            count = len(link.others())
            if count != seen:
                console.line(f"{counted(count, 'node')} in reach")
            seen = count
    console.line("bootnode stopped")
    return 0


def _swarm(config: SwarmConfig, peer_id: str, addresses: Sequence[str]) -> SwarmFile:
    """Returns the swarm file of this bootnode, with the announced addresses, or else those that it listens on."""
    announced = [replace(Multiaddr.parse(text), peer=peer_id) for text in config.announce]
    return SwarmFile(
        name=config.name,
        network=config.network,
        bootnodes=tuple(map(str, announced or addresses))[: swarm_file.MAX_BOOTNODES],
        ledger=LedgerKind.local,
        num_generations=load_config([]).rollout.num_generations,
    )
