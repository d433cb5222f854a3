"""Which network address a peer is answerable for: what the connection shows, never what the peer says of itself."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Mapping

from hivemind.p2p import P2P, PeerID
from hivemind.utils.multiaddr import Multiaddr
from hivemind.utils.multiaddr.exceptions import Error as MultiaddrError

from codezero.network.dht.daemon import DAEMON_ERRORS, DAEMON_TIMEOUT_S, part

REFRESH_S, REFRESH_SHARE = 0.05, 0.05
"""Between two looks at the daemon's connections, and the share of time they may take, however many unknown peers ask
meanwhile."""
MAX_REMEMBERED = 4096
"""Peers whose address is known after their connection has ended."""
_RELAY = "relay "
UNKNOWN = "unknown"
"""The one address that all peers share that we have seen no connection of."""


class AddressBook:
    """Addresses of connected peers, as the p2p daemon sees them, and of those that were connected lately."""

    def __init__(self, p2p: P2P) -> None:
        self._p2p = p2p
        self._seen: OrderedDict[str, str] = OrderedDict()
        self._next_look_s = 0.0
        self._next_look: asyncio.Task[None] | None = None

    def seen(self, peer_id: PeerID) -> str:
        """The address group of a peer, or `UNKNOWN`."""
        return self._seen.get(peer_id.to_base58(), UNKNOWN)

    async def address_of(self, peer_id: PeerID, *, calling: bool = False) -> str:
        """As `seen`, and looks at the connections for a peer that is unknown. One that is calling us has a connection,
        which is worth waiting for the next look."""
        wait_s = self._next_look_s - time.monotonic()
        if self.seen(peer_id) == UNKNOWN and (calling or wait_s <= 0):
            if self._next_look is None or self._next_look.done():
                self._next_look = asyncio.create_task(self._look_in(wait_s))
            await asyncio.shield(self._next_look)
        return self.seen(peer_id)

    async def refresh(self) -> Mapping[str, str]:
        """Looks at all connections now; returns multiaddresses by peer id. Raises one of DAEMON_ERRORS."""
        began_s = time.monotonic()
        peers = await asyncio.wait_for(self._p2p.list_peers(), DAEMON_TIMEOUT_S)
        found = {peer.peer_id.to_base58(): _text(peer.addrs[0]) for peer in peers if peer.addrs}
        for name, multiaddress in found.items():
            self._seen[name] = address_group(multiaddress)
            self._seen.move_to_end(name)
        while len(self._seen) > max(MAX_REMEMBERED, len(found)):
            self._seen.popitem(last=False)
        now = time.monotonic()
        self._next_look_s = now + max(REFRESH_S, (now - began_s) / REFRESH_SHARE)
        return found

    async def _look_in(self, wait_s: float) -> None:
        await asyncio.sleep(max(wait_s, 0.0))
        with contextlib.suppress(*DAEMON_ERRORS):  # whoever keeps the daemon alive looks at it too
            await self.refresh()


def address_group(multiaddress: str) -> str:
    """What one party is likely to hold as a whole: an IPv4 address, an IPv6 /64 network, a relay for all behind it."""
    parts = multiaddress.strip("/").split("/")
    if "p2p-circuit" in parts:
        return f"{_RELAY}{parts[parts.index('p2p-circuit') - 1]}"
    host = part(multiaddress, "ip6")
    if host is None:
        return part(multiaddress, "ip4") or UNKNOWN
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return UNKNOWN
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


def is_direct(group: str) -> bool:
    """Whether the address group of a connection that we have seen is the peer's own, and no relay's."""
    return group != UNKNOWN and not group.startswith(_RELAY)


def _text(address: Multiaddr) -> str:
    """Empty for a kind of address that the daemon knows and hivemind does not."""
    try:
        return str(address)
    except (MultiaddrError, ValueError, TypeError):
        return ""
