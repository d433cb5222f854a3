"""Real nodes on this machine, on loopback: a process and a p2p daemon each, as `codezero run` has them."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
from hivemind.p2p import P2P

from benchmarks.workload import NUM_GENERATIONS, Metered, Record, RecordedBoard, Traffic, groups_of
from codezero.config import SwarmConfig
from codezero.identity.key import load_or_create
from codezero.network.dht import daemon
from codezero.network.dht.link import SwarmLink
from codezero.network.gossip import SwarmGossip
from codezero.network.join import rules_of
from codezero.types import RoundId

ANSWER_TIMEOUT_S = 120.0
STARTED_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One exchange, to begin at `begin_s` by time.monotonic."""

    round_number: int
    begin_s: float
    elapsed_s: float
    """What the round is said to have taken before: the longest wait for others."""
    body_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """The traffic and processor time of a node so far."""

    traffic: Traffic
    python_cpu_s: float
    daemon_cpu_s: float


class MeteredP2P(Metered, P2P):
    """hivemind's P2P with counters."""


class RealNode:
    """One node, driven over a pipe by the process that measures."""

    def __init__(self, config: SwarmConfig) -> None:
        self._pipe, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=_run_node, args=(theirs, config), daemon=True)
        self._process.start()
        theirs.close()
        self.addresses: list[str] = []

    def wait_until_up(self) -> None:
        self.addresses = self._answer()

    def begin(self, order: Order) -> None:
        self._pipe.send(order)

    def record(self) -> tuple[str, Record]:
        """Waits for the end of the exchange that was begun; peer id and record."""
        return self._answer()

    def meter(self) -> Meter:
        self._pipe.send(None)
        traffic = self._answer()
        cpu_s = [sum(process.cpu_times()[:2]) for process in self._processes()]
        return Meter(traffic=traffic, python_cpu_s=cpu_s[0], daemon_cpu_s=sum(cpu_s[1:]))

    def memory_bytes(self) -> int:
        """Returns the memory of Python and daemon, each page divided by the processes that share it. Linux only."""
        return sum(process.memory_full_info().pss for process in self._processes())

    def close(self) -> None:
        self._pipe.close()
        self._process.join(timeout=10)
        self._process.kill()

    def _processes(self) -> list[psutil.Process]:
        python = psutil.Process(self._process.pid)
        return [python, *python.children()]

    def _answer(self) -> Any:
        if not self._pipe.poll(ANSWER_TIMEOUT_S):
            raise SystemExit(
                f"a node gave no answer for {ANSWER_TIMEOUT_S:.0f} s: are there too many for this machine?"
            )
        return self._pipe.recv()


CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])  # hivemind is imported once, and its pages are shared


@contextmanager
def real_swarm(num_nodes: int, config: SwarmConfig, folder: Path) -> Iterator[list[RealNode]]:
    """A bootnode, which takes no part, and so many nodes that know each other. Each listens on a loopback address of
    its own, as if on a machine of its own."""

    def start(index: int, address: str, bootnodes: Sequence[str]) -> RealNode:
        listen, key_file = [f"/ip4/{address}/tcp/0"], str(folder / f"{index}.pem")
        return RealNode(replace(config, listen=listen, identity_path=key_file, bootnodes=list(bootnodes)))

    nodes = [start(0, "127.0.0.1", [])]
    try:
        nodes[0].wait_until_up()
        for first in range(1, num_nodes + 1, STARTED_AT_ONCE):
            for index in range(first, min(first + STARTED_AT_ONCE, num_nodes + 1)):
                address = f"127.0.{1 + index // 200}.{1 + index % 200}"
                nodes.append(start(index, address, nodes[0].addresses[:1]))
            for node in nodes[first:]:
                node.wait_until_up()
        yield nodes[1:]
    finally:
        for node in nodes:
            node.close()


def _run_node(pipe: Connection, config: SwarmConfig) -> None:
    daemon.P2P = MeteredP2P
    assert config.identity_path is not None
    key_file = Path(config.identity_path)
    identity, _ = load_or_create(key_file)
    link = SwarmLink(config, key_file, key_file.with_suffix(".json"), rules_of(config.network))
    board = RecordedBoard(config, identity)
    gossip = SwarmGossip(link, board, config, NUM_GENERATIONS)
    try:
        link.start()
        pipe.send(link.addresses)
        while True:
            order = pipe.recv()
            pipe.send(_traffic(link) if order is None else _exchange(gossip, board, identity.peer_id, order))
    except EOFError:  # the other end is closed
        pass
    finally:
        link.close()


def _exchange(gossip: SwarmGossip, board: RecordedBoard, peer_id: str, order: Order) -> tuple[str, Record]:
    groups = groups_of(peer_id, order.round_number, order.body_bytes)
    time.sleep(max(order.begin_s - time.monotonic(), 0.0))
    record = board.record = Record(began_s=time.monotonic())
    record.num_groups = len(gossip.exchange(RoundId(number=order.round_number), groups, order.elapsed_s).external)
    return peer_id, record


def _traffic(link: SwarmLink) -> Traffic:
    dht = link.run(link.dht())
    assert dht is not None
    assert isinstance(dht.p2p, MeteredP2P)
    return dht.p2p.traffic
