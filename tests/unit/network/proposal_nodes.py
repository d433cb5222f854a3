"""Proposers and solvers over a network in memory, and feeds that do as they are told."""

from __future__ import annotations

import asyncio
import hashlib
import secrets

from codezero.config import Network, SwarmConfig
from codezero.network.board import Notice, Sight
from codezero.network.genrl import GenrlProposalBoard
from codezero.network.native import NativeProposalBoard
from codezero.network.proposals import SwarmProposals
from codezero.network.solvers import SwarmSolvers
from codezero.network.wire import AttemptResults, Reason
from codezero.proposals import Proposal
from codezero.types import Outcome, Reward, ScoredGroup, Task, TaskOrigin, Verdict
from tests.unit.network.dht.memory_p2p import MemoryLink
from tests.unit.network.wire_builders import SWARM, group, identity


def proposal(name: str = "f", peer_id: str = "p", **changes) -> Proposal:
    fields = {"model_id": "tiny", "question": f"Write {name}(x).", "tests": f"assert {name}(1) == 2", "difficulty": 2}
    return Proposal(peer_id=peer_id, **{**fields, "raw": f"raw {name}", **changes})


def results(name: str = "0" * 32, p_correct=(1.0, 0.0), rewards=(1.2, -0.2)) -> AttemptResults:
    return AttemptResults(name=name, p_correct=tuple(p_correct), rewards=tuple(rewards))


def attempts(
    of: Proposal | None, p_correct=(1.0, 0.0), external: bool = False, scored: bool = True, masked=()
) -> ScoredGroup:
    """What a solver made of a proposal; None stands for an attempt without code, `masked` has places of such."""
    origin = TaskOrigin.BUILTIN if of is None else TaskOrigin.PROPOSER
    task = Task(origin=origin, question="q", tests="t", proposal=of)
    one = group(texts=["a"] * len(p_correct))
    return ScoredGroup(
        group=type(one)(peer_id=one.peer_id, model_id="tiny", policy_version=1, task=task, rollouts=one.rollouts),
        verdicts=tuple(
            Verdict(outcome=Outcome.NO_CODE if p is None else Outcome.JUDGED, p_correct=p) for p in p_correct
        ),
        rewards=tuple(
            None if i in masked else Reward(total=-1.0 if p is None else p, parts={}) for i, p in enumerate(p_correct)
        )
        if scored
        else (),
        external=external,
    )


class Loop(MemoryLink):
    """A link whose `run` may be called on any thread but the loop's."""

    def __init__(self, dht) -> None:
        super().__init__(dht)
        self._loop = asyncio.get_running_loop()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class Solver:
    """SwarmProposals with its calls as coroutines."""

    def __init__(self, board, link=None, **settings) -> None:
        self.side = SwarmProposals(link or Loop(object()), board, SwarmConfig(**settings))

    async def collect(self):
        return await asyncio.to_thread(self.side.collect)

    async def give(self, *groups):
        await asyncio.to_thread(self.side.give, groups)


class Proposer:
    """SwarmSolvers with its calls as coroutines."""

    def __init__(self, board, link=None, name: str = "alice", **settings) -> None:
        self.side = SwarmSolvers(link or Loop(object()), board, SwarmConfig(**settings), identity(name).peer_id)

    async def publish(self, *proposals) -> bool:
        """Publishes; returns False if the status says that no node keeps it."""
        await asyncio.to_thread(self.side.publish, proposals)
        return "nobody keeps" not in self.side.status()

    async def collect(self):
        return await asyncio.to_thread(self.side.collect)


def board(name: str, network: Network = Network.native, swarm: str = SWARM):
    if network is Network.genrl:
        return GenrlProposalBoard(identity(name))
    return NativeProposalBoard(swarm, identity(name), secrets.token_hex(8))


class FakeFeed:
    """board.RecordFeed: shows and gives what it is told to, and notes what is published."""

    duplicate_identity = False

    def __init__(self) -> None:
        self.records: dict[str, object] = {}
        """Items by peer; a WireError or a number of seconds for a record that fails or stalls."""
        self.addresses: dict[str, str] = {}
        self.rejected: set[tuple[str, Reason]] = set()
        self.dropped: tuple[Reason, ...] = ()
        self.own, self.keeps = False, True
        self.published: list[list] = []
        self.taken: list[str] = []

    def pack(self, items):
        return list(items)

    async def publish(self, dht, record):
        self.published.append(record)
        return self.keeps

    async def look(self, dht):
        notices = [
            Notice(
                peer_id=name,
                digest=hashlib.sha256(repr(content).encode()).digest(),
                content=content,
                address=self.addresses.get(name, name),
            )
            for name, content in self.records.items()
        ]
        return Sight(notices=notices, rejected=set(self.rejected), own=self.own)

    async def take(self, dht, notice):
        self.taken.append(notice.peer_id)
        if isinstance(notice.content, Exception):
            raise notice.content
        if isinstance(notice.content, float):
            await asyncio.sleep(notice.content)
        return tuple(notice.content), self.dropped


class FakeBoard:
    """board.ProposalBoard with a topic for each proposer."""

    def __init__(self) -> None:
        self.proposals = FakeFeed()
        self.topics: dict[str, FakeFeed] = {}

    def name_of(self, proposal):
        return proposal.proposal_id if proposal.question else ""

    def feedback_topic(self, proposer):
        return proposer

    def feedback_feed(self, topic):
        return self.topics.setdefault(topic, FakeFeed())
