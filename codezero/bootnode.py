"""A bootnode: where a swarm's nodes find each other. It keeps an address and an identity, and learns nothing itself."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path

from hivemind.dht.node import DHTNode
from hivemind.p2p import P2P, P2PDaemonError

from codezero import hosting
from codezero.errors import NetworkError
from codezero.multiaddr import Multiaddr
from codezero.network import identity
from codezero.observe.console import Console


def run_bootnode(
    listen: Sequence[str], announce: Sequence[str], identity_path: Path, startup_timeout_s: float = 60.0
) -> int:
    """Serves until SIGINT or SIGTERM; returns the exit code.

    Prints a line `bootnode PEER_ID listening on MULTIADDRESS` for each address once it can be used.

    Raises ValueError: no multiaddress. IdentityError: the key cannot be used. NetworkError: an address cannot be
    listened on, or the daemon has died.
    """
    for text in listen:
        hosting.check_free(Multiaddr.parse(text))
    own, _ = identity.load_or_create(identity_path)
    return asyncio.run(_serve(own.peer_id, listen, announce, identity_path, startup_timeout_s, Console()))


async def _serve(
    peer_id: str,
    listen: Sequence[str],
    announce: Sequence[str],
    identity_path: Path,
    timeout_s: float,
    console: Console,
) -> int:
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    p2p = None
    try:
        p2p = await P2P.create(
            host_maddrs=list(listen),
            announce_maddrs=list(announce) or None,
            identity_path=str(identity_path),
            startup_timeout=timeout_s,
        )
        await DHTNode.create(p2p=p2p)
        for address in await p2p.get_visible_maddrs(latest=True):
            console.line(f"bootnode {peer_id} listening on {address}")
        stop, death = asyncio.create_task(asked.wait()), asyncio.create_task(p2p._child.wait())
        await asyncio.wait((stop, death), return_when=asyncio.FIRST_COMPLETED)
        if not asked.is_set():
            raise NetworkError("the p2p daemon has died; start the bootnode again")
    except (P2PDaemonError, ValueError) as error:
        raise NetworkError(f"cannot listen on {' '.join(listen)}: {' '.join(str(error).split())}") from error
    finally:
        if p2p is not None:
            with contextlib.suppress(ProcessLookupError):
                await p2p.shutdown()
    console.line("bootnode stopped")
    return 0
