"""Which network address a peer is answerable for: what the connection shows, never what the peer says of itself."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Mapping

from hivemind.p2p import P2P, PeerID

REFRESH_S = 1.0
"""Between two looks at the daemon's connections, however many unknown peers ask meanwhile."""
UNKNOWN = "unknown"
"""The one address that all peers share to which there is no connection."""


class AddressBook:
    """Addresses of connected peers, as the p2p daemon sees them."""

    def __init__(self, p2p: P2P) -> None:
        self._p2p = p2p
        self._seen: dict[str, str] = {}
        self._looked_at_s = -REFRESH_S

    async def address_of(self, peer_id: PeerID) -> str:
        """The address group of a peer; `UNKNOWN` without a connection to it."""
        if peer_id.to_base58() not in self._seen and time.monotonic() - self._looked_at_s >= REFRESH_S:
            await self.refresh()
        return self._seen.get(peer_id.to_base58(), UNKNOWN)

    async def refresh(self) -> Mapping[str, str]:
        """Looks at all connections now; returns multiaddresses by peer id."""
        self._looked_at_s = time.monotonic()
        peers = await self._p2p.list_peers()
        self._seen = {peer.peer_id.to_base58(): address_group(str(peer.addrs[0])) for peer in peers if peer.addrs}
        return {peer.peer_id.to_base58(): str(peer.addrs[0]) for peer in peers if peer.addrs}


def address_group(multiaddress: str) -> str:
    """What one party is likely to hold as a whole: an IPv4 address, an IPv6 /64 network, a relay for all behind it."""
    parts = multiaddress.strip("/").split("/")
    named = dict(zip(parts[::2], parts[1::2], strict=False))
    if "p2p-circuit" in parts:
        return f"relay {named.get('p2p', '')}"
    if "ip6" in named:
        try:
            address = ipaddress.IPv6Address(named["ip6"])
        except ValueError:
            return UNKNOWN
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return named.get("ip4", UNKNOWN)
