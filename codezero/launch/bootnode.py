"""A bootnode: where a swarm's nodes find each other. It keeps an address and an identity, and learns nothing itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from codezero import peer
from codezero.config import Network, Reach, SwarmConfig
from codezero.dht.cache import PeerCache
from codezero.dht.link import SwarmLink
from codezero.launch import hosting
from codezero.multiaddr import Multiaddr
from codezero.observe.console import Console

STATUS_S = 10.0
"""Between two looks at how many nodes there are; a line is printed when the number has changed."""


def run_bootnode(listen: Sequence[str], announce: Sequence[str], identity_path: Path, network: Network) -> int:
    """Serves swarms of one wire format until SIGINT or SIGTERM; returns the exit code.

    Prints a line `bootnode PEER_ID listening on MULTIADDRESS` for each address once it can be used.

    Raises ValueError: no multiaddress. IdentityError: the key cannot be used. NetworkError: an address cannot be
    listened on.
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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    with ExitStack() as stack:
        _, key_file = peer.take_identity(config, console, stack)
        link = SwarmLink(config, key_file, PeerCache(identity_path.with_suffix(".peers.json")), peer.rules_of(network))
        stack.callback(link.close)
        link.start()
        for address in link.addresses:
            console.line(f"bootnode {link.peer_id} listening on {address}")
        console.line(f"join with: codezero run swarm={network.value} swarm.bootnodes=[ADDRESS], one of these")
        seen = 0
        while not asked.wait(STATUS_S):
            count = len(link.others())
            if count != seen:
                console.line(f"{count} node{'s' * (count != 1)} in reach")
            seen = count
    console.line("bootnode stopped")
    return 0
