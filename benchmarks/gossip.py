"""Measures what an exchange costs a node, and how long it takes, as the swarm grows.

    python -m benchmarks.gossip                            about 10 minutes and 9 GiB on two cores
    python -m benchmarks.gossip --real --simulated 10000   about an hour and 9 GiB on one core
    python -m benchmarks.gossip --quick                    does it work?

Each node publishes `--kilobytes` of groups and collects a pool of `--pool` groups, as an exchange of a round does. All
begin at the same moment, or spread over `--spread` seconds.

- real: a process and a p2p daemon a node, on loopback, each with an address of its own. Machine-wide processor time
  bounds how fast so many nodes on one machine can be.
- simulated: the same code from the gossip down to the DHT's messages, in one process over a network in memory, with
  `--delay` a message. There is no p2p daemon, bandwidth, loss or processing time, so latency is what the number of
  messages one after another makes it; calls, bytes, records and the node's own processor time are real.

Columns: `published`, seconds that publishing takes; `collected`, seconds from when a publication was out and its
collector had begun, until the collector had its groups decoded; `seen`, the same until it came in sight; `calls`, made
by a node in a round; `KB`, sent in calls and answers, and `lo KB` all that went over loopback, of other programs too;
`CPU ms` and `p2pd ms`, processor time of a node in a round; `others %`, how much of the processor time used was that
of other programs. All are means over nodes, and medians over rounds; the first round is not counted.

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import math
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.measure import busy_s, machine
from benchmarks.real_swarm import Order, real_swarm
from benchmarks.simulated_p2p import SimulatedNetwork
from benchmarks.simulated_swarm import SimulatedNode, simulated_swarm, simulated_time
from benchmarks.workload import POOL, Numbers, latencies, medians, quantile, traffic
from codezero.config import Network, SwarmConfig
from codezero.network import directory

TARGET_NODES, TARGET_P95_S = 32, 1.0
"""Publications of 32 real nodes are collected within a second, 95 of 100."""
ELAPSED_S = 8.0
"""What each round is said to have taken before its exchange: the longest wait for others."""
SETTLE_S = 4.0
"""The seconds that real nodes have to find each other after the last has started."""

REAL = {
    "published p50": ".2f",
    "published p95": ".2f",
    "collected p50": ".2f",
    "collected p95": ".2f",
    "collected max": ".2f",
    "seen p95": ".2f",
    "groups": ".1f",
    "looks": ".1f",
    "calls": ".1f",
    "KB": ".0f",
    "lo KB": ".0f",
    "CPU ms": ".0f",
    "p2pd ms": ".0f",
    "others %": ".0f",
}
SIMULATED = {
    "calls": ".1f",
    "served p95": ".0f",
    "served max": ".0f",
    "KB": ".0f",
    "KB p95": ".0f",
    "KB max": ".0f",
    "CPU ms": ".0f",
    "records": ".1f",
    "records max": ".0f",
    "stored KB": ".0f",
    "stored KB max": ".0f",
    "published %": ".1f",
    "found %": ".1f",
    "peers seen": ".1f",
    "seen p5": ".0f",
    "groups": ".1f",
    "same depth %": ".0f",
    "new contacts": ".0f",
    "collected p50": ".2f",
    "collected p95": ".2f",
}
"""Columns and how their numbers are written."""


def measure_real(num_nodes: int, config: SwarmConfig, options: argparse.Namespace) -> Iterator[tuple[float, Numbers]]:
    """A row for each spread."""
    with tempfile.TemporaryDirectory() as folder, real_swarm(num_nodes, config, Path(folder)) as nodes:
        time.sleep(SETTLE_S)
        number = 0
        for spread_s in options.spread:
            rounds = []
            for _ in range(options.rounds + 1):
                number += 1
                before, lo_bytes, machine_s = [node.meter() for node in nodes], loopback_bytes(), busy_s()
                begin_s = time.monotonic() + 0.2
                for index, node in enumerate(random.sample(nodes, num_nodes)):
                    node.begin(
                        Order(
                            round_number=number,
                            begin_s=begin_s + spread_s * index / num_nodes,
                            elapsed_s=ELAPSED_S,
                            body_bytes=options.kilobytes * 1024,
                        )
                    )
                records = dict(node.record() for node in nodes)
                lo_bytes, machine_s = loopback_bytes() - lo_bytes, busy_s() - machine_s
                used = [(node.meter(), earlier) for node, earlier in zip(nodes, before, strict=True)]
                python_s = sum(now.python_cpu_s - old.python_cpu_s for now, old in used)
                daemon_s = sum(now.daemon_cpu_s - old.daemon_cpu_s for now, old in used)
                rounds.append(
                    {
                        **latencies(records),
                        **traffic([now.traffic - earlier.traffic for now, earlier in used]),
                        "lo KB": lo_bytes / 1024 / num_nodes,
                        "CPU ms": 1e3 * python_s / num_nodes,
                        "p2pd ms": 1e3 * daemon_s / num_nodes,
                        "others %": max(100 * (1 - (python_s + daemon_s) / machine_s), 0.0),
                    }
                )
                note(f"real {num_nodes}, round {number}: {rounds[-1]}")
            yield spread_s, medians(rounds[1:])
        note(f"real {num_nodes}: {sum(node.memory_bytes() for node in nodes) / num_nodes / 2**20:.0f} MiB a node")


def measure_simulated(num_nodes: int, config: SwarmConfig, options: argparse.Namespace) -> Numbers:
    """One row, of the last round."""
    network = SimulatedNetwork(options.delay)

    async def play() -> Numbers:
        cpu_s = time.process_time()
        nodes = await simulated_swarm(num_nodes, config, network)
        note(f"simulated {num_nodes}: all have joined, {time.process_time() - cpu_s:.0f} CPU s")
        for number in range(1, options.simulated_rounds + 2):
            numbers = await simulated_round(nodes, number, options)
            note(f"simulated {num_nodes}, round {number}: {numbers}")
        return numbers

    with simulated_time() as loop:
        return loop.run_until_complete(play())


async def simulated_round(nodes: Sequence[SimulatedNode], number: int, options: argparse.Namespace) -> Numbers:
    """All nodes make one exchange."""
    loop = asyncio.get_running_loop()
    depths = Counter([round(directory.depth((await node.dht()).estimate_size())) for node in nodes])
    before = [copy.copy(node.p2p.traffic) for node in nodes]
    met = [len(node.p2p.contacts) for node in nodes]
    cpu_s, begin_s = time.process_time(), loop.time()
    exchanges = [
        node.exchange(number, begin_s + random.random() * options.spread[0], ELAPSED_S, options.kilobytes * 1024)
        for node in nodes
    ]
    records = dict(zip([node.peer_id for node in nodes], await asyncio.gather(*exchanges), strict=True))
    cpu_s = time.process_time() - cpu_s
    stored = [node.stored() for node in nodes]
    published = {peer_id for peer_id, record in records.items() if record.published_s is not None}
    found = set().union(*[record.seen_s for record in records.values()])
    seen = [len(record.seen_s) for record in records.values()]
    return {
        **latencies(records),
        **traffic([node.p2p.traffic - earlier for node, earlier in zip(nodes, before, strict=True)]),
        "CPU ms": 1e3 * cpu_s / len(nodes),
        "records": statistics.fmean(count for count, _ in stored),
        "records max": max(count for count, _ in stored),
        "stored KB": statistics.fmean(size for _, size in stored) / 1024,
        "stored KB max": max(size for _, size in stored) / 1024,
        "published %": 100 * len(published) / len(nodes),
        "found %": 100 * len(found & published) / max(len(published), 1),
        "peers seen": statistics.fmean(seen),
        "seen p5": quantile(seen, 0.05),
        "same depth %": 100 * max(depths.values()) / len(nodes),
        "new contacts": statistics.fmean(len(node.p2p.contacts) - old for node, old in zip(nodes, met, strict=True)),
    }


def loopback_bytes() -> float:
    """All that went over loopback so far; NaN where the kernel does not say."""
    devices = Path("/proc/net/dev")
    lines = devices.read_text().splitlines() if devices.is_file() else []
    return next((float(line.split()[1]) for line in lines if line.strip().startswith("lo:")), math.nan)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def header(columns: Mapping[str, str]) -> str:
    return " ".join([f"{'nodes':24}", *(f"{name:>5}" for name in columns)])


def line(label: str, numbers: Numbers, columns: Mapping[str, str]) -> str:
    return " ".join([f"{label:24}", *(f"{numbers[name]:{max(len(name), 5)}{form}}" for name, form in columns.items())])


def ratios(rows: Mapping[str, Numbers]) -> str:
    """Returns a node's costs in each row divided by those in the first."""
    first, *others = rows.values()
    lines = [
        f"{label}: " + ", ".join(f"{numbers[name] / first[name]:.2f}x the {name}" for name in ("calls", "KB", "CPU ms"))
        for label, numbers in zip(list(rows)[1:], others, strict=True)
    ]
    return "\n".join([f"a node, compared with {next(iter(rows))}:", *lines]) if lines else ""


def verdict(p95_s: float) -> str:
    met = "met" if p95_s < TARGET_P95_S else "MISSED"
    return f"{TARGET_NODES} real nodes: collected p95 {p95_s:.2f} s (target {TARGET_P95_S:g} s: {met})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table of real nodes and one of simulated ones for each wire format."""
    options = _parser().parse_args(arguments)
    if options.quick:
        options.real, options.simulated, options.rounds, options.simulated_rounds = [], [40], 1, 1
    print(f"machine: {machine()}")
    work = f"{options.kilobytes} KB a publication, a pool of {options.pool} groups"
    print(f"{work}, {options.delay:g} s a simulated message")
    for wire in options.wire:
        config = SwarmConfig(network=Network(wire), num_external=1, pool=options.pool)
        if options.real:
            print_real(config, options)
        if options.simulated:
            print_simulated(config, options)


def print_real(config: SwarmConfig, options: argparse.Namespace) -> None:
    """One table."""
    rows: dict[str, Numbers] = {}
    print(f"\n{header(REAL)}")
    for num_nodes in options.real:
        for spread_s, numbers in measure_real(num_nodes, config, options):
            label = f"{num_nodes} {config.network.value}, {spread_s:g} s"
            rows[label] = numbers
            print(line(label, numbers, REAL), flush=True)
            if num_nodes == TARGET_NODES:
                print(verdict(numbers["collected p95"]))
    print(ratios(rows))


def print_simulated(config: SwarmConfig, options: argparse.Namespace) -> None:
    """One table."""
    rows: dict[str, Numbers] = {}
    print(f"\n{header(SIMULATED)}")
    for num_nodes in options.simulated:
        label = f"{num_nodes} {config.network.value}, simulated"
        rows[label] = measure_simulated(num_nodes, config, options)
        print(line(label, rows[label], SIMULATED), flush=True)
    print(ratios(rows))


def _parser() -> argparse.ArgumentParser:
    parser = command_line("gossip", __doc__)
    parser.add_argument("--real", type=int, nargs="*", default=[2, 8, 32, 64, 96], metavar="N", help="numbers of nodes")
    parser.add_argument("--simulated", type=int, nargs="*", default=[32, 100, 316, 1000], metavar="N", help="the same")
    parser.add_argument("--wire", nargs="+", choices=["native", "genrl"], default=["native"], help="wire formats")
    parser.add_argument("--kilobytes", type=int, default=32, help="size of a publication")
    parser.add_argument("--pool", type=int, default=POOL, help="groups that an exchange collects")
    parser.add_argument("--spread", type=float, nargs="+", default=[0.0, 3.0], help="seconds over which nodes begin")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds of real nodes")
    parser.add_argument(
        "--simulated-rounds", type=int, default=2, help="of which the last counts; one more goes before"
    )
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a simulated message takes")
    parser.add_argument("--quick", action="store_true", help="40 simulated nodes only")
    return parser


if __name__ == "__main__":
    main()
