"""The interfaces of a wire format: boards on which nodes publish, and look at what others have published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from codezero.network.dht.addresses import UNKNOWN
from codezero.network.dht.dht import Dht
from codezero.network.wire import AttemptResults, Reason
from codezero.proposals import Proposal
from codezero.types import RolloutGroup, RoundId

MIN_TTL_S, MAX_TTL_S = 120.0, 3600.0
"""Shortest and longest life of rollouts in seconds; within these it is four rounds of the publisher."""
PROPOSAL_TTL_S = 1800.0
"""Life of proposals and feedback, in seconds. A proposer that publishes every ten minutes stays visible even if it
misses two publications."""
PUBLISH_TRIES = 2
"""Number of tries to publish. The first may ask nodes that are gone; the second does not."""
DUPLICATE_IDENTITY = (
    "WARNING: another live node uses this node's key; give one of them its own with swarm.identity_path"
)
"""The state of the network of a node with such a twin."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice that a peer has published something, which is fetched and decoded only if it is wanted."""

    peer_id: str
    digest: bytes
    """A hash that tells this publication from the peer's others."""
    content: Any
    """The data that the board needs to fetch the publication."""
    address: str = UNKNOWN
    """The publisher's address group (`dht.addresses`)."""
    is_direct: bool = False
    """True if this node has seen the peer's own connection from the address; False if it knows it from others only."""
    age: int | None = None
    """The publication's age in this node's rounds; None if it is older than the window."""


@dataclass(slots=True)
class Sight:
    """The result of one look at a board."""

    notices: list[Notice] = field(default_factory=list)
    rejected: set[tuple[str, Reason]] = field(default_factory=set)
    """Publications that cannot be used, as (claimed peer id, reason)."""
    own: bool = False
    """True if there is a publication under this node's peer id."""


class Board(Protocol):
    """The board of rollouts."""

    @property
    def duplicate_identity(self) -> bool:
        """True if this exchange has shown another live node with this node's key."""
        ...

    def pack(self, round_id: RoundId, groups: Sequence[RolloutGroup]) -> bytes:
        """Encodes own groups of a round. Raises WireError: the record is too large, or other nodes would refuse it."""
        ...

    async def publish(self, dht: Dht, round_id: RoundId, record: bytes, ttl_s: float) -> bool:
        """Publishes a record. Returns False if no node keeps it."""
        ...

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        """Returns the newest publication of each visible peer except this node."""
        ...

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        """Returns a publication's groups, and a reason for each one dropped. Raises WireError: none can be used."""
        ...

    def finished(self) -> None:
        """Ends an exchange: later publications belong to the next one."""
        ...


class RecordFeed(Protocol[T]):
    """A feed of proposals or feedback, in which each peer has one record of its latest ones."""

    @property
    def duplicate_identity(self) -> bool:
        """True if this node's last record replaced one of another live node with the same key."""
        ...

    def pack(self, items: Sequence[T]) -> bytes:
        """Encodes items as a record. Raises WireError: it is too large, or other nodes would refuse it."""
        ...

    async def publish(self, dht: Dht, record: bytes) -> bool:
        """Replaces this node's record. Returns False if no node keeps it."""
        ...

    async def look(self, dht: Dht) -> Sight:
        """Returns the newest record of each visible peer except this node. Ages are not set."""
        ...

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[T, ...], tuple[Reason, ...]]:
        """Returns a record's items, and a reason for each that was dropped. Raises WireError: none can be used."""
        ...


class ProposalBoard(Protocol):
    """The board of proposals and the feedback on them."""

    @property
    def proposals(self) -> RecordFeed[Proposal]:
        """The feed of proposals."""
        ...

    def name_of(self, proposal: Proposal) -> str:
        """Returns the name of a proposal in feedback; empty if it has none."""
        ...

    def feedback_topic(self, proposer: str) -> str:
        """Returns the topic of a proposer's feedback, which may be the same for all proposers."""
        ...

    def feedback_feed(self, topic: str) -> RecordFeed[AttemptResults]:
        """Returns the feed of feedback at a topic."""
        ...
