"""Measures the share of honest groups that `swarm.tasks=known` drops where nodes draw from different sources.

    python -m benchmarks.known            # six seconds on one core, without a model

Nodes with the task sources, proposals and exchange of real ones play rounds of two tasks; what they publish is packed
and read as in the native format, and lies in memory. All drop unknown tasks. A proposer shows three problems a round,
of which nodes take up what passes their checks; a hostile peer publishes known questions with tests of its own, and
inventions. For solutions stand texts that say whose they are, which is all that an exchange looks at.

Rows are those who read, columns those who wrote: which share of the groups was dropped.

Figures: docs/measurements.md#what-known-tasks-cost
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import splits
from benchmarks.harness import command_line
from codezero.config import BuiltinConfig, DatasetConfig, PeerTasks, ProposalsConfig, SwarmConfig, TasksConfig
from codezero.network import wire
from codezero.network.board import Notice, Sight
from codezero.network.gossip import SwarmGossip
from codezero.network.wire import ROLLOUTS, Announcement, Reason
from codezero.proposals import Proposal
from codezero.proposer import jobs
from codezero.tasks.build import make_task_source
from codezero.tasks.known import WantedTasks
from codezero.tasks.mixture import Mixture
from codezero.tasks.problems import load_problems
from codezero.tasks.proposed import WithProposals
from codezero.types import FinishReason, Rollout, RolloutGroup, RoundId, Task, TaskOrigin
from codezero.workers import Workers

NUM_NODES, NUM_TASKS, NUM_PROPOSED = 3, 2, 3
"""Nodes of a kind, groups of a publication, problems that the proposer adds each round."""
HOSTILE = "hostile"

Counts = Counter[tuple[str, str, bool]]
"""Groups, by (kind of the reader, kind of the writer, dropped)."""


class Memory:
    """board.Board of one node, and its link; `records` are those of all: (round, bytes) by name."""

    duplicate_identity = False

    def __init__(self, name: str, records: dict[str, tuple[int, bytes]]) -> None:
        self._name, self._records = name, records

    def pack(self, round_id: RoundId, groups: Sequence[RolloutGroup]) -> bytes:
        return wire.pack_groups(groups)

    async def publish(self, dht: Any, round_id: RoundId, record: bytes, ttl_s: float) -> bool:
        self._records[self._name] = (round_id.number, record)
        return True

    async def look(self, dht: Any, round_id: RoundId) -> Sight:
        sight = Sight()
        for name, (number, record) in self._records.items():
            if name != self._name:
                digest, age = hashlib.sha256(record).digest(), round_id.number - number
                sight.notices.append(Notice(peer_id=name, digest=digest, content=record, address=name, age=age))
        return sight

    async def take(self, dht: Any, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        announcement = Announcement(
            swarm="benchmark",
            topic=ROLLOUTS,
            peer_id=notice.peer_id,
            round=0,
            published_at_s=0.0,
            expires_at_s=0.0,
            instance="0" * 16,
            digest=notice.digest,
            size=len(notice.content),
        )
        return wire.unpack_groups(notice.content, announcement)

    def finished(self) -> None:
        pass

    async def dht(self) -> Any:
        return self

    def others(self) -> set[str]:
        return set()

    def status(self) -> str:
        return "in memory"


class Node:
    def __init__(self, name: str, board: Any, sources: Mixture, tasks: WithProposals) -> None:
        self.name, self._tasks = name, tasks
        swarm = SwarmConfig(num_external=1000, tasks=PeerTasks.known)
        unwanted = WantedTasks(swarm.tasks, sources.withheld, tasks).why_not
        self._gossip = SwarmGossip(board, board, swarm, num_generations=2, unwanted=unwanted)

    async def play(self, number: int) -> Counts:
        groups = [attempted(self.name, number, task) for task in self._tasks.draw(NUM_TASKS)]
        found = await self._gossip._exchange(RoundId(number=number), groups, 0.0)
        assert {reason for _, reason in found.rejected} <= {Reason.UNKNOWN_TASK.value}, found.rejected
        kind = kind_of(self.name)
        kept = Counter((kind, kind_of(group.peer_id), False) for group in found.external)
        return kept + Counter((kind, kind_of(peer_id), True) for peer_id, _ in found.rejected)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("known", __doc__)
    splits.add_mbpp(parser)
    parser.add_argument("--rounds", type=int, default=30, metavar="N", help="of each node (default 30)")
    options = parser.parse_args(arguments)
    kinds = kinds_of_nodes(options.mbpp)
    with Workers(1) as workers:
        # all nodes come to the same about a problem, so it is asked once for all
        why_not = functools.cache(lambda proposal: jobs.why_not(workers, proposal.question, proposal.tests))
        written = proposals(options.mbpp)
        counts = asyncio.run(play(kinds, written, why_not, options.rounds))
        print(f"{sum(why_not(one) is None for one in written)} of {len(written)} proposals pass the checks")
    print(f"{len(kinds) * NUM_NODES} nodes, {options.rounds} rounds, {sum(counts.values())} groups read")
    print(" ".join(f"{name:>18}" for name in ("dropped", *kinds, "all honest", HOSTILE)))
    for name, readers in {**{kind: [kind] for kind in kinds}, "all": list(kinds)}.items():
        shares = [share(counts, readers, writers) for writers in (*([kind] for kind in kinds), kinds, [HOSTILE])]
        print(f"{name:>18} " + " ".join(f"{one:18.1%}" for one in shares))


def kinds_of_nodes(path: Path) -> dict[str, TasksConfig]:
    file, none = DatasetConfig(weight=1.0, path=str(path)), BuiltinConfig(weight=0.0)
    return {
        "built-in": TasksConfig(),
        "MBPP": TasksConfig(mbpp=file, builtin=none),
        "MBPP, built-in": TasksConfig(mbpp=file),
        "MBPP, no proposals": TasksConfig(mbpp=file, builtin=none, proposals=ProposalsConfig(share=0.0)),
    }


def proposals(path: Path) -> list[Proposal]:
    """Returns problems of MBPP's validation split, which no node draws, in place of those that a proposer writes."""
    written = []
    for task, _ in splits.references(splits.Split.tune, path).values():
        question, name = task.question.partition("\n\n")[0], task.tests.partition("(")[0].split()[-1]
        asked = f"{question} Call it {name}."
        written.append(Proposal(peer_id="proposer", model_id="", question=asked, tests=task.tests))
    return written


async def play(
    kinds: Mapping[str, TasksConfig],
    written: Sequence[Proposal],
    why_not: Callable[[Proposal], str | None],
    rounds: int,
) -> Counts:
    records: dict[str, tuple[int, bytes]] = {}
    shown: list[Proposal] = []
    nodes = []
    for name, config in ((f"{kind}/{i}", config) for kind, config in kinds.items() for i in range(NUM_NODES)):
        sources = make_task_source(config, seed=len(nodes))
        tasks = WithProposals(sources, config.proposals.share, lambda: shown, why_not)
        nodes.append(Node(name, Memory(name, records), sources, tasks))
    counts: Counts = Counter()
    dice = random.Random(0)
    for number in range(1, rounds + 1):
        shown[:] = written[: NUM_PROPOSED * number][-wire.MAX_PROPOSALS :]
        records[HOSTILE] = (number, wire.pack_groups(hostile_groups(number)))
        for node in dice.sample(nodes, len(nodes)):
            counts += await node.play(number)
    return counts


def hostile_groups(number: int) -> list[RolloutGroup]:
    known = load_problems(1, 1)[number % 5].task
    invented = Task(origin=TaskOrigin.MBPP, question=f"Write invention {number}.", tests="assert f(1) == 2")
    return [attempted(HOSTILE, number, task) for task in (replace(known, tests="assert f(1) == 2"), invented)]


def attempted(name: str, number: int, task: Task) -> RolloutGroup:
    rollouts = tuple(Rollout(text=f"{name} {number} {i}", finish=FinishReason.STOP) for i in range(2))
    return RolloutGroup(peer_id=name, model_id="", policy_version=0, task=task, rollouts=rollouts)


def kind_of(name: str) -> str:
    return name.partition("/")[0]


def share(counts: Counts, readers: Collection[str], writers: Collection[str]) -> float:
    """Returns the share that was dropped of the groups that `readers` read of `writers`."""
    of_these = [(key, count) for key, count in counts.items() if key[0] in readers and key[1] in writers]
    return sum(count for key, count in of_these if key[2]) / max(sum(count for _, count in of_these), 1)


if __name__ == "__main__":
    main()
