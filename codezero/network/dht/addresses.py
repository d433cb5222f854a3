"""The network addresses of peers, taken from their connections and never from what the peers themselves say."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping

from hivemind.p2p import P2P, PeerID
from hivemind.utils.multiaddr import Multiaddr
from hivemind.utils.multiaddr.exceptions import Error as MultiaddrError

from codezero.network.dht.daemon import DAEMON_ERRORS, DAEMON_TIMEOUT_S, part

REFRESH_S, REFRESH_SHARE = 0.05, 0.05
"""Seconds between two looks at the daemon's connections, and the largest share of the time that looks may take,
however many unknown peers send requests."""
MAX_REMEMBERED = 4096
"""The most peers whose address is kept after their connection has ended."""
_RELAY = "relay "
UNKNOWN = "unknown"
"""The address shared by all peers whose connection this node has not seen."""


class AddressBook:
    """The addresses of peers that are or were lately connected, as the p2p daemon sees them."""

    def __init__(self, p2p: P2P) -> None:
        self._p2p = p2p
        self._seen: OrderedDict[str, str] = OrderedDict()
        self._next_look_s = 0.0
        self._next_look: asyncio.Task[None] | None = None

    def seen(self, peer_id: PeerID) -> str:
        """Returns the address group of a peer, or `UNKNOWN`."""
        return self._seen.get(peer_id.to_base58(), UNKNOWN)

    async def address_of(self, peer_id: PeerID, *, calling: bool = False) -> str:
        """Returns the same as `seen`, after a look at the connections if the peer is unknown. With `calling` it waits
        for the next look, since a peer that is calling this node has a connection."""
        wait_s = self._next_look_s - time.monotonic()
        if self.seen(peer_id) == UNKNOWN and (calling or wait_s <= 0):
            if self._next_look is None or self._next_look.done():
                self._next_look = asyncio.create_task(self._look_in(wait_s))
            await asyncio.shield(self._next_look)
        return self.seen(peer_id)

    def spread(self, peers: Iterable[PeerID], count: int, called: Collection[PeerID] = ()) -> list[PeerID]:
        """Returns the first `count` peers, one of each address before any second one. All `called` ones that were not
        seen share the address `UNKNOWN`; any other that was not seen may be anywhere and counts as alone there."""
        firsts: dict[str | PeerID, PeerID] = {}
        others = []
        for peer in peers:
            address = self.seen(peer)
            place = peer if address == UNKNOWN and peer not in called else address
            if firsts.setdefault(place, peer) != peer:
                others.append(peer)
        return [*firsts.values(), *others][:count]

    async def refresh(self) -> Mapping[str, str]:
        """Looks at all connections now. Returns multiaddresses by peer id. Raises one of DAEMON_ERRORS."""
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
        with contextlib.suppress(*DAEMON_ERRORS):  # `link` checks the daemon too, and starts it again
            await self.refresh()


def address_group(multiaddress: str) -> str:
    """Returns the part of an address that one party is likely to control as a whole: an IPv4 address, an IPv6 /64
    network, or the one of the relay, whose peer id is free, for all peers behind it."""
    relay, is_relayed, _ = multiaddress.partition("/p2p-circuit")
    if is_relayed:
        return f"{_RELAY}{address_group(relay)}"
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


def is_group(text: str) -> bool:
    """Returns True if a text, which others may have made up, is what `address_group` gives for a known address."""
    host = text.removeprefix(_RELAY)
    try:
        if ":" in host:
            return host == str(ipaddress.IPv6Network(host)) and host.endswith("/64")
        return host == str(ipaddress.IPv4Address(host))
    except ValueError:
        return False


def is_direct(group: str) -> bool:
    """Returns True if an address group belongs to a peer's own connection, not to a relay."""
    return group != UNKNOWN and not group.startswith(_RELAY)


def _text(address: Multiaddr) -> str:
    """Returns an address as text; empty for a kind that the daemon knows and hivemind does not."""
    try:
        return str(address)
    except (MultiaddrError, ValueError, TypeError):
        return ""
