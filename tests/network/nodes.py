"""Live nodes in the test's process: a p2p daemon and a network thread each, all on loopback."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from codezero.config import Network, SwarmConfig
from codezero.identity import key as identity
from codezero.identity.key import Identity
from codezero.network import directory, genrl
from codezero.network.dht.dht import Dht
from codezero.network.dht.link import SwarmLink
from codezero.network.genrl import GenrlBoard
from codezero.network.gossip import SwarmGossip
from codezero.network.native import NativeBoard
from codezero.train.claims import packed
from codezero.types import RolloutGroup, RoundId, SwarmRound, Task
from tests.processes import programs, wait_until
from tests.unit.network.wire_builders import group
from tests.unit.network.wire_builders import identity as named_identity

NUM_GENERATIONS = 2
LOGPROBS = packed([-0.5, -0.25])
"""What each node says of each of its rollouts."""


@dataclass
class Node:
    name: str
    identity: Identity
    config: SwarmConfig
    link: SwarmLink
    board: NativeBoard | GenrlBoard
    gossip: SwarmGossip

    @property
    def peer_id(self) -> str:
        return self.identity.peer_id

    @property
    def address(self) -> str:
        return self.link.addresses[0]

    @property
    def port(self) -> int:
        return int(self.address.split("/")[4])

    @property
    def daemon(self) -> psutil.Process:
        return psutil.Process(self.dht.p2p._child.pid)

    @property
    def dht(self) -> Dht:
        found = self.link.run(self.link.dht())
        assert found is not None
        return found

    def groups(self, round_number: int) -> list[RolloutGroup]:
        own = group(self.peer_id, f"task of {self.name} in round {round_number}")
        return [replace(own, rollouts=tuple(replace(one, logprobs=LOGPROBS) for one in own.rollouts))]

    def exchange(self, round_number: int, elapsed_s: float = 20.0, groups=None) -> SwarmRound:
        own = self.groups(round_number) if groups is None else groups
        return self.gossip.exchange(RoundId(number=round_number), own, elapsed_s)

    def wait_for(self, *others: Node) -> None:
        """Until these are its neighbours."""
        wait_until(lambda: {other.peer_id for other in others} <= set(self.dht.neighbours()))


class Swarm:
    """Makes nodes; `live_swarm` ends them all."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    def node(
        self,
        name: str,
        *bootnodes: Node | str,
        swarm: str = "swarm-a",
        network: Network = Network.native,
        cache: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        unwanted: Callable[[Task], str | None] = lambda task: None,
        **settings,
    ) -> Node:
        """A node that has started; `unwanted` says why it does not train on a task."""
        own = named_identity(name)
        key_file = self._folder / f"{secrets.token_hex(4)}.pem"
        identity.save(own, key_file)
        config = SwarmConfig(
            network=network,
            name=swarm,
            listen=[f"/ip4/{host}/tcp/{port}"],
            bootnodes=[node if isinstance(node, str) else node.address for node in bootnodes],
            **{"num_external": 8, **settings},
        )
        native = network is Network.native
        rules = directory.RULES if native else genrl.RULES
        link = SwarmLink(config, key_file, cache or self._folder / f"{name}.json", rules)
        self._stack.callback(link.close)
        link.start()
        board = (NativeBoard if native else GenrlBoard)(swarm, own, secrets.token_hex(8), config.window)
        gossip = SwarmGossip(link, board, config, NUM_GENERATIONS, unwanted=unwanted)
        return Node(name, own, config, link, board, gossip)


@contextmanager
def live_swarm(folder: Path) -> Iterator[Swarm]:
    with ExitStack() as stack:
        stack.callback(_end_daemons)
        yield Swarm(folder, stack)


def _end_daemons() -> None:
    """Also those of a link that could not end its own; that it could not is a failure."""
    daemons = [child for child, arguments, _ in programs(os.getpid()) if Path(arguments[0]).name == "p2pd"]
    _, left = psutil.wait_procs(daemons, timeout=30)
    for child in left:
        child.kill()
    psutil.wait_procs(left)
    assert left == []


def exchange_all(nodes: Sequence[Node], round_number: int, elapsed_s: float = 20.0) -> dict[str, SwarmRound]:
    """All at the same time; by name."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        rounds = pool.map(lambda node: node.exchange(round_number, elapsed_s), nodes)
        return {node.name: found for node, found in zip(nodes, rounds, strict=True)}


def sources(found: SwarmRound) -> set[str]:
    return {one.peer_id for one in found.external}
