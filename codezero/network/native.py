"""The boards of native swarms: a sharded topic of rollouts, one of proposals, and one of feedback for each proposer."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from codezero.identity.key import Identity
from codezero.network import directory, wire
from codezero.network.board import PROPOSAL_TTL_S, Notice, Sight
from codezero.network.dht.dht import Dht
from codezero.network.signed import SignedTopic
from codezero.network.wire import Announcement, AttemptResults, Reason
from codezero.proposals import Proposal
from codezero.types import RolloutGroup, RoundId

DEPTHS_TRIED = 3
"""The number of depths that a publisher tries if its shard is full, each one bit deeper."""

T = TypeVar("T")


class NativeBoard:
    """Implements `board.Board`. `instance` is as in `SignedTopic`."""

    def __init__(self, swarm: str, identity: Identity, instance: str, window: int) -> None:
        self._swarm, self._peer_id = swarm, identity.peer_id
        self._topic = SignedTopic(swarm, wire.ROLLOUTS, identity, instance)
        self._exchanges_s: deque[float] = deque(maxlen=window)
        """The Unix times of the last looks in each of the last `window` exchanges."""
        self._shards: tuple[RoundId | None, Sequence[str]] = (None, ())
        self._looked_at_s = time.time()

    @property
    def duplicate_identity(self) -> bool:
        return self._topic.duplicate_identity

    def pack(self, round_id: RoundId, groups: Sequence[RolloutGroup]) -> bytes:
        return wire.pack_groups(groups)

    async def publish(self, dht: Dht, round_id: RoundId, record: bytes, ttl_s: float) -> bool:
        bits = round(directory.depth(dht.estimate_size()))
        shards = [directory.shard_of(self._swarm, self._peer_id, bits + deeper) for deeper in range(DEPTHS_TRIED)]
        return await self._topic.publish(dht, record, ttl_s, round_number=round_id.number, shards=shards)

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        if self._shards[0] != round_id:
            self._shards = (round_id, directory.shards_to_read(dht.estimate_size(), random.Random()))
        self._looked_at_s = time.time()
        if self._exchanges_s and self._exchanges_s[-1] > self._looked_at_s:
            self._exchanges_s.clear()  # the clock was set back, and all that is published from now on would be stale
        sight = await self._topic.look(dht, self._shards[1])
        sight.notices = [replace(one, age=self._age(one.content.published_at_s)) for one in sight.notices]
        return sight

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        announcement: Announcement = notice.content
        return wire.unpack_groups(await self._topic.fetch(dht, announcement), announcement)

    def finished(self) -> None:
        self._exchanges_s.append(self._looked_at_s)
        self._topic.duplicate_identity = False

    def _age(self, published_at_s: float) -> int | None:
        """Returns an age in own exchanges, or None if it is too old; in a node's first exchanges nothing is."""
        age = sum(looked_s > published_at_s for looked_s in self._exchanges_s)
        return None if self._exchanges_s.maxlen == age else age


class NativeProposalBoard:
    """Implements `board.ProposalBoard`. Feedback names a proposal by its id; each proposer has a topic of feedback."""

    def __init__(self, swarm: str, identity: Identity, instance: str) -> None:
        self._swarm, self._identity, self._instance = swarm, identity, instance
        self.proposals = _NativeFeed(self._topic(wire.PROPOSALS), wire.pack_proposals, wire.unpack_proposals)

    def name_of(self, proposal: Proposal) -> str:
        return proposal.proposal_id

    def feedback_topic(self, proposer: str) -> str:
        return wire.feedback_to(proposer)

    def feedback_feed(self, topic: str) -> _NativeFeed[AttemptResults]:
        return _NativeFeed(self._topic(topic), wire.pack_feedback, wire.unpack_feedback)

    def _topic(self, name: str) -> SignedTopic:
        return SignedTopic(self._swarm, name, self._identity, self._instance)


class _NativeFeed(Generic[T]):
    """Implements `board.RecordFeed`."""

    def __init__(
        self,
        topic: SignedTopic,
        pack: Callable[[Sequence[T]], bytes],
        unpack: Callable[[bytes, Announcement], tuple[tuple[T, ...], tuple[Reason, ...]]],
    ) -> None:
        self._topic, self.pack, self._unpack = topic, pack, unpack

    @property
    def duplicate_identity(self) -> bool:
        return self._topic.duplicate_identity

    async def publish(self, dht: Dht, record: bytes) -> bool:
        self._topic.duplicate_identity = False
        return await self._topic.publish(dht, record, PROPOSAL_TTL_S)

    async def look(self, dht: Dht) -> Sight:
        return await self._topic.look(dht)

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[T, ...], tuple[Reason, ...]]:
        return self._unpack(await self._topic.fetch(dht, notice.content), notice.content)
