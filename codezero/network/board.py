"""What a gossip needs of a wire format: a place to publish to, and to see what others have published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from codezero.dht.addresses import UNKNOWN
from codezero.dht.dht import Dht
from codezero.network.wire import Reason
from codezero.types import RolloutGroup, RoundId

MIN_TTL_S, MAX_TTL_S = 120.0, 3600.0
"""Records live four rounds of their publisher, within these bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """That a peer has published. What it has published is fetched and decoded only if it is wanted."""

    peer_id: str
    digest: bytes
    """Tells this publication from the peer's others."""
    content: Any
    """What the board needs to take the groups."""
    address: str = UNKNOWN
    age: int | None = None
    """How many of our rounds ago it was published; None if it is older than the window."""


@dataclass(slots=True)
class Sight:
    """What one look at the board showed."""

    notices: list[Notice] = field(default_factory=list)
    rejected: set[tuple[str, Reason]] = field(default_factory=set)
    """(peer id as claimed, reason)"""
    twin: bool = False
    """Whether another live node publishes under our peer id."""


class Board(Protocol):
    async def publish(self, dht: Dht, round_id: RoundId, groups: Sequence[RolloutGroup], ttl_s: float) -> bool:
        """Makes own groups of a round known; False if no node keeps them."""
        ...

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        """The newest publication of each peer in sight, our own left out."""
        ...

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        """A publication's groups, and why some of them were dropped. Raises WireError: all of it is unusable."""
        ...

    def finished(self, round_id: RoundId) -> None:
        """Notes that an exchange is over: what is published from now on belongs to the next."""
        ...
