"""The parts of `benchmarks.gossip` that real and simulated nodes have in common: texts to share, counters around
board and calls, and sums of their numbers."""

from __future__ import annotations

import asyncio
import base64
import math
import random
import secrets
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codezero.config import Network, SwarmConfig
from codezero.identity.key import Identity
from codezero.network import wire
from codezero.network.board import Board, Notice, Sight
from codezero.network.dht.dht import Dht
from codezero.network.genrl import GenrlBoard
from codezero.network.native import NativeBoard
from codezero.types import FinishReason, Rollout, RolloutGroup, RoundId, Task, TaskOrigin

NUM_GROUPS, NUM_GENERATIONS = 2, 4
"""The I groups of a publication and the G rollouts of each, as a node has them by default."""
POOL = 8
"""Groups that an exchange collects: twice as many as are trained on, of which there are J = 4."""


def groups_of(peer_id: str, round_number: int, body_bytes: int) -> list[RolloutGroup]:
    """Groups whose native body is of about that size. The texts are random base64, of which zstd takes off a quarter
    and no more; real rollouts shrink to a third or less, so a real body of this size holds more text."""
    dice = random.Random(f"{peer_id}/{round_number}")
    num_bytes = max(body_bytes - 600, 0) // (NUM_GROUPS * NUM_GENERATIONS)
    return [
        RolloutGroup(
            peer_id=peer_id,
            model_id="benchmark",
            policy_version=round_number,
            task=Task(origin=TaskOrigin.MBPP, question=f"{peer_id} {round_number} {index}", tests="assert f(1) == 2"),
            rollouts=tuple(
                Rollout(text=base64.b64encode(dice.randbytes(num_bytes)).decode(), finish=FinishReason.STOP)
                for _ in range(NUM_GENERATIONS)
            ),
        )
        for index in range(NUM_GROUPS)
    ]


Numbers = Mapping[str, float]
"""What was measured, by name."""


@dataclass(slots=True)
class Record:
    """The exchange of one node in a round. Times are of its event loop, which all processes of a machine share."""

    began_s: float = 0.0
    publishing_s: float = 0.0
    published_s: float | None = None
    """When the board's publish returned; None if no node kept what it published."""
    seen_s: dict[str, float] = field(default_factory=dict)
    """When a peer's publication of this round first came in sight."""
    taken_s: dict[str, float] = field(default_factory=dict)
    """When its groups were there, decoded."""
    num_looks: int = 0
    num_groups: int = 0
    """Handed out by the exchange, those of earlier rounds included."""


class RecordedBoard:
    """board.Board: another board, with its times noted. All nodes play the same rounds, which tells what is new."""

    def __init__(self, config: SwarmConfig, identity: Identity) -> None:
        kind = NativeBoard if config.network is Network.native else GenrlBoard
        self._board: Board = kind(config.name, identity, secrets.token_hex(8), config.window)
        self.record = Record()
        self._round_number = 0

    @property
    def duplicate_identity(self) -> bool:
        return self._board.duplicate_identity

    def pack(self, round_id: RoundId, groups: Sequence[RolloutGroup]) -> bytes:
        return self._board.pack(round_id, groups)

    async def publish(self, dht: Dht, round_id: RoundId, record: bytes, ttl_s: float) -> bool:
        self.record.publishing_s = _now_s()
        kept = await self._board.publish(dht, round_id, record, ttl_s)
        if kept:
            self.record.published_s = _now_s()
        return kept

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        sight = await self._board.look(dht, round_id)
        self._round_number = round_id.number
        self.record.num_looks += 1
        for notice in sight.notices:
            if self._is_new(notice):
                self.record.seen_s.setdefault(notice.peer_id, _now_s())
        return sight

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[wire.Reason, ...]]:
        taken = await self._board.take(dht, notice)
        if self._is_new(notice):
            self.record.taken_s[notice.peer_id] = _now_s()
        return taken

    def finished(self) -> None:
        self._board.finished()

    def _is_new(self, notice: Notice) -> bool:
        number = notice.content.round if isinstance(self._board, NativeBoard) else notice.content[1]
        return bool(number == self._round_number)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class Traffic:
    """A node's remote calls and the bytes of their messages, without what carries them (TLS, framing, TCP)."""

    made: int = 0
    served: int = 0
    sent_bytes: int = 0

    def __sub__(self, earlier: Traffic) -> Traffic:
        return Traffic(self.made - earlier.made, self.served - earlier.served, self.sent_bytes - earlier.sent_bytes)


class Metered:
    """A mixin for a P2P that counts its calls, what it serves and sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.traffic = Traffic()

    async def call_protobuf_handler(self, peer_id: Any, name: str, input: Any, output_protobuf_type: Any) -> Any:
        self.traffic.made += 1
        self.traffic.sent_bytes += input.ByteSize()
        return await super().call_protobuf_handler(peer_id, name, input, output_protobuf_type)

    async def add_protobuf_handler(
        self, name: str, handler: Callable[[Any, Any], Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> None:
        async def metered(request: Any, context: Any) -> Any:
            self.traffic.served += 1
            answer = await handler(request, context)
            self.traffic.sent_bytes += answer.ByteSize()
            return answer

        await super().add_protobuf_handler(name, metered, *args, **kwargs)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of them does not exceed; NaN of none."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else math.nan


def latencies(records: Mapping[str, Record]) -> Numbers:
    """Returns the times of all publications, and of all pairs of a publication and its collector."""
    out = {peer_id: record for peer_id, record in records.items() if record.published_s is not None}

    def since(collector: Record, when: Mapping[str, float]) -> list[float]:
        return [
            max(at - max(out[peer_id].published_s or 0.0, collector.began_s), 0.0)
            for peer_id, at in when.items()
            if peer_id in out
        ]

    published = [(record.published_s or 0.0) - record.publishing_s for record in out.values()]
    collected = [wait for record in records.values() for wait in since(record, record.taken_s)]
    seen = [wait for record in records.values() for wait in since(record, record.seen_s)]
    return {
        "published p50": quantile(published, 0.5),
        "published p95": quantile(published, 0.95),
        "collected p50": quantile(collected, 0.5),
        "collected p95": quantile(collected, 0.95),
        "collected max": quantile(collected, 1.0),
        "seen p95": quantile(seen, 0.95),
        "groups": statistics.fmean(record.num_groups for record in records.values()),
        "looks": statistics.fmean(record.num_looks for record in records.values()),
    }


def traffic(used: Sequence[Traffic]) -> Numbers:
    """Returns what nodes sent and served in a round."""
    return {
        "calls": statistics.fmean(node.made for node in used),
        "served p95": quantile([node.served for node in used], 0.95),
        "served max": max(node.served for node in used),
        "KB": statistics.fmean(node.sent_bytes for node in used) / 1024,
        "KB p95": quantile([node.sent_bytes for node in used], 0.95) / 1024,
        "KB max": max(node.sent_bytes for node in used) / 1024,
    }


def medians(rounds: Sequence[Numbers]) -> Numbers:
    """Returns the median of each number over the rounds."""
    return {name: statistics.median(numbers[name] for numbers in rounds) for name in rounds[0]}
