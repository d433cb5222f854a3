"""Thousands of nodes in one process: Dht, RecordServer, board and SwarmGossip as they are, over `SimulatedP2P`."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from cryptography.hazmat.primitives.asymmetric import rsa
from hivemind.p2p import PeerID

from benchmarks.simulated_p2p import SimulatedClock, SimulatedLoop, SimulatedNetwork, SimulatedP2P
from benchmarks.workload import NUM_GENERATIONS, Metered, Record, RecordedBoard, groups_of
from codezero.config import SwarmConfig
from codezero.identity.key import KEY_BITS, Identity
from codezero.network.dht.dht import Dht
from codezero.network.gossip import SwarmGossip
from codezero.network.join import rules_of
from codezero.types import RoundId


class MeteredP2P(Metered, SimulatedP2P):
    """A simulated P2P with counters."""


class SimulatedNode:
    """A node that is its own link: a gossip asks one for `dht`, `others` and `status` only."""

    def __init__(self, network: SimulatedNetwork, identity: Identity, address: str, config: SwarmConfig) -> None:
        self.p2p = MeteredP2P(network, PeerID.from_base58(identity.peer_id), address)
        self.peer_id = identity.peer_id
        self._rules = rules_of(config.network)
        self._board = RecordedBoard(config, identity)
        self._gossip = SwarmGossip(self, self._board, config, NUM_GENERATIONS)
        self._dht: Dht | None = None

    async def join(self, through: SimulatedNode | None) -> None:
        self._dht = await Dht.create(self.p2p, self._rules, serve=True)
        if through is not None and not await self._dht.meet(through.p2p.peer_id):
            raise SystemExit(f"{self.peer_id} cannot join: a fault of the simulation")

    async def dht(self) -> Dht:
        assert self._dht is not None
        return self._dht

    def others(self) -> set[str]:
        assert self._dht is not None
        return set(self._dht.neighbours())

    def status(self) -> str:
        return "simulated"

    async def exchange(self, round_number: int, begin_s: float, elapsed_s: float, body_bytes: int) -> Record:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(begin_s - loop.time())
        record = self._board.record = Record(began_s=loop.time())
        groups = groups_of(self.peer_id, round_number, body_bytes)
        record.num_groups = len(
            (await self._gossip._exchange(RoundId(number=round_number), groups, elapsed_s)).external
        )
        return record

    def stored(self) -> tuple[int, int]:
        """Records kept for others, and their bytes."""
        assert self._dht is not None
        assert self._dht._server is not None
        records = [record for held in self._dht._server._records._records.values() for record in held.values()]
        return len(records), sum(len(record.value) for record in records)


@contextmanager
def simulated_time() -> Iterator[SimulatedLoop]:
    """A loop whose clock does not wait; codezero's network goes by it too."""
    clock = SimulatedClock()
    loop = SimulatedLoop(clock)
    with ExitStack() as stack:
        for name, module in sys.modules.items():
            if name.startswith("codezero.network.") and getattr(module, "time", None) is time:
                stack.enter_context(mock.patch.object(module, "time", clock))
        stack.callback(loop.close)
        yield loop


async def simulated_swarm(num_nodes: int, config: SwarmConfig, network: SimulatedNetwork) -> list[SimulatedNode]:
    """Nodes with a key and an address each, which have joined one after the other through one that was there before.
    No routing table is filled by hand; joining takes no simulated time."""
    nodes = [
        SimulatedNode(network, identity, f"/ip4/10.{i >> 16}.{i >> 8 & 255}.{i & 255}/tcp/4001", config)
        for i, identity in enumerate(make_identities(num_nodes))
    ]
    delay_s, network.delay_s = network.delay_s, 0.0
    for index, node in enumerate(nodes):
        await node.join(random.choice(nodes[:index]) if index else None)
    network.delay_s = delay_s
    return nodes


def make_identities(count: int) -> list[Identity]:
    """Valid keys, made cheaply: each is the product of two primes of a small pool, and so worthless as a secret."""
    primes: list[int] = []
    while len(primes) * (len(primes) - 1) // 2 < count:
        numbers = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS).private_numbers()
        primes += [numbers.p, numbers.q]
    pairs = [(p, q) for i, p in enumerate(primes) for q in primes[:i]]
    return [Identity.of(_key_of(p, q)) for p, q in random.sample(pairs, count)]


def _key_of(p: int, q: int) -> rsa.RSAPrivateKey:
    e = 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    return rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=rsa.rsa_crt_dmp1(d, p),
        dmq1=rsa.rsa_crt_dmq1(d, q),
        iqmp=rsa.rsa_crt_iqmp(p, q),
        public_numbers=rsa.RSAPublicNumbers(e, p * q),
    ).private_key(unsafe_skip_rsa_key_validation=True)
