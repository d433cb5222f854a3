"""Addresses of peers, such as /ip4/203.0.113.7/tcp/4001/p2p/Qm... (https://github.com/multiformats/multiaddr).

Only the forms that libp2p dials here: an IP address or a host name, a port, the peer id, and a relay if needed.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Any

MAX_LENGTH = 400
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_PEER = rf"(?:Qm{_BASE58}{{44}}|1{_BASE58}{{45,55}})"
_PATTERN = re.compile(
    r"/(?P<protocol>ip4|ip6|dns|dns4|dns6)/(?P<host>[^/]+)"
    r"/(?P<transport>tcp|udp)/(?P<port>[0-9]{1,5})(?P<over>(?:/(?:quic-v1|quic|wss|ws|tls))*)"
    rf"(?:/p2p/(?P<peer>{_PEER})(?:/p2p-circuit/p2p/(?P<relayed>{_PEER}))?)?",
    re.ASCII,
)
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII | re.I)


def is_loopback(host: str) -> bool:
    """Returns whether a host, an address or a name, is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiaddr:
    protocol: str
    """Kind of host: ip4, ip6, dns, dns4 or dns6."""
    host: str
    transport: str
    """Transport protocol: tcp or udp."""
    port: int
    over: str = ""
    """Protocols over the transport, such as /quic-v1."""
    peer: str | None = None
    relayed: str | None = None
    """Id of the addressed peer, if `peer` is only the relay to it."""

    @classmethod
    def parse(cls, text: str) -> Multiaddr:
        """Returns the address in `text`. Raises ValueError if it is none; the message says why, without the text."""
        if len(text) > MAX_LENGTH:
            raise ValueError(f"it has {len(text)} characters, more than {MAX_LENGTH}")
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise ValueError("it is not of the form /ip4/203.0.113.7/tcp/4001/p2p/Qm...")
        parts: dict[str, Any] = match.groupdict()
        found = cls(**{**parts, "port": int(parts["port"])})
        if found.port > 65535:
            raise ValueError("its port is above 65535")
        if not found._has_host():
            raise ValueError(f"its host is not a valid {found.protocol} address")
        return found

    def _has_host(self) -> bool:
        if self.protocol not in ("ip4", "ip6"):
            return _NAME.fullmatch(self.host) is not None
        try:
            (ipaddress.IPv4Address if self.protocol == "ip4" else ipaddress.IPv6Address)(self.host)
        except ValueError:
            return False
        return "%" not in self.host  # a zone is valid on one machine only

    def __str__(self) -> str:
        text = f"/{self.protocol}/{self.host}/{self.transport}/{self.port}{self.over}"
        if self.peer:
            text += f"/p2p/{self.peer}"
        return f"{text}/p2p-circuit/p2p/{self.relayed}" if self.relayed else text

    def at(self, host: str) -> Multiaddr:
        """Returns the address with another IP address or host name. Raises ValueError if `host` is neither."""
        try:
            protocol = f"ip{ipaddress.ip_address(host).version}"
        except ValueError:
            protocol = "dns"
        return self.parse(str(replace(self, protocol=protocol, host=host)))

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The IP address of the host; None for a name."""
        return ipaddress.ip_address(self.host) if self.protocol in ("ip4", "ip6") else None
