"""What is asked of a wire format: places to publish to, and to see what others have published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from codezero.network.dht.addresses import UNKNOWN
from codezero.network.dht.dht import Dht
from codezero.network.wire import Marks, Reason
from codezero.proposals import Proposal
from codezero.types import RolloutGroup, RoundId

MIN_TTL_S, MAX_TTL_S = 120.0, 3600.0
"""Rollouts live four rounds of their publisher, within these bounds."""
PROPOSAL_TTL_S = 1800.0
"""Life of proposals and of feedback: a proposer that writes a batch in ten minutes is in sight until its next, even if
it misses two."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """That a peer has published. What it has published is fetched and decoded only if it is wanted."""

    peer_id: str
    digest: bytes
    """Tells this publication from the peer's others."""
    content: Any
    """What the board needs to take the groups."""
    address: str = UNKNOWN
    is_direct: bool = False
    """Whether we have seen the peer's own connection come from the address, rather than been told of it."""
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
    own: bool = False
    """Whether something stands under our own peer id."""


class Board(Protocol):
    def pack(self, round_id: RoundId, groups: Sequence[RolloutGroup]) -> bytes:
        """The record of own groups of a round. Raises WireError: it is too large, or other nodes would refuse it."""
        ...

    async def publish(self, dht: Dht, round_id: RoundId, record: bytes, ttl_s: float) -> bool:
        """Makes it known; False if no node keeps it."""
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


class Shelf(Protocol[T]):
    """One kind of small thing, of which each peer shows its latest in one record."""

    twin: bool
    """Whether our last record took the place of one by another live node with our key."""

    def pack(self, items: Sequence[T]) -> bytes:
        """The record. Raises WireError: it is too large, or other nodes would refuse it."""
        ...

    async def publish(self, dht: Dht, record: bytes) -> bool:
        """Puts our record in the place of the one before; False if no node keeps it."""
        ...

    async def look(self, dht: Dht) -> Sight:
        """The newest record of each peer in sight, our own left out; ages are not told."""
        ...

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[T, ...], tuple[Reason, ...]]:
        """What is in a record, and why some of it was dropped. Raises WireError: all of it is unusable."""
        ...


class ProposalBoard(Protocol):
    """Where proposals lie, and the feedback on them."""

    @property
    def proposals(self) -> Shelf[Proposal]: ...

    def name_of(self, proposal: Proposal) -> str:
        """What feedback calls a proposal; empty if there is no way to."""
        ...

    def place_for(self, proposer: str) -> str:
        """Where a proposer looks for feedback; the same for all in a format without places of their own."""
        ...

    def feedback_at(self, place: str) -> Shelf[Marks]: ...
