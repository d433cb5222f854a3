"""A board and a link without a network, to see what a gossip makes of them."""

from __future__ import annotations

import asyncio
import hashlib

from codezero.config import SwarmConfig
from codezero.network.board import Notice, Sight
from codezero.network.gossip import SwarmGossip
from codezero.network.wire import Reason, WireError
from tests.unit.network.dht.memory_p2p import MemoryLink, exchange
from tests.unit.network.wire_builders import group


class Board:
    """Shows and gives what it is told to, and notes what is published."""

    def __init__(self, **publications) -> None:
        self.publications = publications
        """Groups by name; a WireError or a number of seconds instead of groups for one that fails or stalls."""
        self.addresses: dict[str, str] = {}
        self.told_of: set[str] = set()
        """Names whose address others have told us."""
        self.ages: dict[str, int | None] = {}
        self.rejected: set[tuple[str, Reason]] = set()
        self.duplicate_identity = False
        self.published: list[list] = []
        self.lives_s: list[float] = []
        self.keeps, self.most, self.bad = True, 64, None
        """Say whether a record is kept, how many groups are in one at most, and which group is in none."""
        self.looks = 0

    def pack(self, round_id, groups):
        if len(groups) > self.most or self.bad in groups:
            raise WireError(Reason.OVERSIZED, "too large")
        return list(groups)

    async def publish(self, dht, round_id, record, ttl_s):
        self.published.append(record)
        self.lives_s.append(ttl_s)
        return self.keeps

    async def look(self, dht, round_id):
        self.looks += 1
        notices = [
            Notice(
                peer_id=name,
                digest=hashlib.sha256(repr(content).encode()).digest(),
                content=content,
                address=self.addresses.get(name, name),
                is_direct=name not in self.told_of,
                age=self.ages.get(name, 0),
            )
            for name, content in self.publications.items()
        ]
        return Sight(notices=notices, rejected=set(self.rejected))

    async def take(self, dht, notice):
        if isinstance(notice.content, WireError):
            raise notice.content
        if isinstance(notice.content, float):
            await asyncio.sleep(notice.content)
        return tuple(notice.content), ()

    def finished(self):
        pass


class Link(MemoryLink):
    def __init__(self, *others: str) -> None:
        super().__init__(object())
        self._others = set(others)

    def others(self):
        return self._others


def gossip(board: Board, link=None, **settings) -> SwarmGossip:
    config = SwarmConfig(**{"num_external": 4, **settings})
    return SwarmGossip(link or Link(), board, config, num_generations=2, fits=lambda task: len(task.question) < 1000)


def play(board: Board, groups=(), elapsed_s: float = 0.0, **settings):
    return asyncio.run(exchange(gossip(board, **settings), 7, groups, elapsed_s))


def questions(found) -> set[str]:
    return {one.task.question for one in found.external}


def of(peer_id: str, *names: str):
    return [group(peer_id, name) for name in names]
