"""Measures whether a node beside hostile peers finishes its rounds in its usual time and memory.

Peers on loopback addresses of their own publish, in every round, groups that hold each program of `attacks.bombs`, once
as a solution and once in the tests. A node with a real model plays beside them, as `codezero run` has it, and once more
beside peers that send as many ordinary groups. Prints for both the seconds of the rounds, the most memory that the node
and its workers held against the plan, and what became of the hostile groups. On a machine that does other things too,
the processor time of the rounds says more than their seconds.

    python -m benchmarks.hostile --network native     # about 15 minutes on 2 cores; also genrl

The pool is opened so that all groups are read in every round; `swarm.pool=0` leaves it as it is.

Figures: docs/measurements.md#beside-hostile-peers
"""

from __future__ import annotations

import json
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.attacks.bombs import BOMBS, CASES, TEST_BOMBS, solution
from benchmarks.harness import command_line
from benchmarks.measure import machine
from codezero.config import Network, SwarmConfig
from codezero.identity.key import Identity, load_or_create
from codezero.network import genrl
from codezero.network.dht.link import SwarmLink
from codezero.network.genrl import GenrlBoard
from codezero.network.join import rules_of
from codezero.network.native import NativeBoard
from codezero.network.wire.codec import MAX_RECORD_BYTES
from codezero.tasks.problems import load_problems
from codezero.types import FinishReason, Rollout, RolloutGroup, RoundId, Task, TaskOrigin

G = 4
GROUPS_A_PEER = 2
"""The node reads one group of each address before a second one, and stops reading an address that kills its workers."""
REPUBLISH_S = 10.0
SAMPLE_S = 0.5
MAX_SLOWER, MAX_OVER_PLAN = 1.2, 1.1
"""Targets: seconds of rounds, and memory against the plan."""

MakeGroups = Callable[[], list[RolloutGroup]]


def main() -> None:
    parser = command_line("hostile", __doc__)
    parser.add_argument("--network", choices=["native", "genrl"], default="native", help="wire format (default native)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each run (default 3)")
    parser.add_argument("settings", nargs="*", help="of the node, such as train.method=lora")
    options = parser.parse_args()
    network = Network(options.network)
    genrl.MAX_OWN_BYTES = MAX_RECORD_BYTES  # hostile peers send what nodes read, and not only what GenRL's nodes stand
    arms = {"ordinary": ordinary_groups, "hostile": hostile_groups}
    found = {name: play(network, make, options.rounds, options.settings) for name, make in arms.items()}
    print(machine())
    for name, run in found.items():
        seconds = [sum(line["seconds"].values()) for line in run.rounds]
        scoring = [line["seconds"]["score"] for line in run.rounds]
        print(
            f"{network.value}, {name} peers: {len(run.rounds)} rounds of {statistics.median(seconds):.0f} s "
            f"({', '.join(f'{one:.0f}' for one in seconds)}), scoring {', '.join(f'{one:.1f}' for one in scoring)} s; "
            f"processor time {', '.join(f'{one:.0f}' for one in run.processor_s)} s; "
            f"peak {run.peak_bytes / 2**30:.2f} GiB of {run.planned_bytes / 2**30:.2f} planned; "
            f"dropped {dict(sum((Counter(line['dropped']) for line in run.rounds), Counter()))}"
        )
    for line in outcomes(found["hostile"].groups):
        print(line)
    ordinary, hostile = found["ordinary"], found["hostile"]
    slower = median_s(hostile) / median_s(ordinary)
    dearer = statistics.median(hostile.processor_s) / statistics.median(ordinary.processor_s)
    over = max(run.peak_bytes / run.planned_bytes for run in found.values())
    complete = all(len(run.rounds) == options.rounds for run in found.values())
    for what, value, target, is_met in (
        ("all rounds finished", f"{complete}", "True", complete),
        ("rounds, times as long", f"{slower:.2f}", f"at most {MAX_SLOWER}", slower <= MAX_SLOWER),
        ("rounds, times the processor time", f"{dearer:.2f}", f"at most {MAX_SLOWER}", dearer <= MAX_SLOWER),
        ("memory, share of the plan", f"{over:.2f}", f"at most {MAX_OVER_PLAN}", over <= MAX_OVER_PLAN),
    ):
        print(f"{what}: {value}, target {target}: {'met' if is_met else 'MISSED'}")


def hostile_groups() -> list[RolloutGroup]:
    """Every bomb as a solution and in the tests; a mark tells each publication from the one before."""
    mark = secrets.token_hex(4)
    made = []
    for name in BOMBS:
        code = f"{solution(name)}# {mark}\n"
        made.append(group(f"{name}, in the solution. Write f(). {mark}", [code] * G, CASES))
        idle = [f"def g{number}():\n    return 1\n# {mark}\n" for number in range(G)]
        made.append(group(f"{name}, in the tests. Write f(). {mark}", idle, f"{code}{CASES}"))
    for name, tests in TEST_BOMBS.items():
        fine = [f"def f():\n    return {number}\n# {mark}\n" for number in range(G)]
        made.append(group(f"{name}. Write f(). {mark}", fine, tests))
    return made


def ordinary_groups() -> list[RolloutGroup]:
    """Returns as many groups of solved problems, with some wrong attempts."""
    mark = secrets.token_hex(4)
    return [
        group(
            f"{problem.task.question}\n{mark}",
            [f"{problem.reference}\n# {mark}", *[f"{problem.reference}\nassert {mark!r} == {n}" for n in range(G - 1)]],
            problem.task.tests,
        )
        for problem in load_problems()[: 2 * len(BOMBS) + len(TEST_BOMBS)]
    ]


def group(question: str, codes: Sequence[str], tests: str) -> RolloutGroup:
    return RolloutGroup(
        peer_id="",
        model_id="hostile",
        policy_version=0,
        task=Task(origin=TaskOrigin.MBPP, question=question, tests=tests),
        rollouts=tuple(Rollout(text=f"```python\n{code}```", finish=FinishReason.STOP) for code in codes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A node's rounds and their groups as it reported them, what each took of the processor, and memory in bytes."""

    rounds: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    processor_s: list[float]
    peak_bytes: int
    planned_bytes: int


def play(network: Network, make: MakeGroups, num_rounds: int, settings: Sequence[str]) -> Run:
    """A node's rounds beside peers that publish what `make` makes."""
    size = len(make())
    with tempfile.TemporaryDirectory() as name, publishing(network, make, num_rounds, Path(name)) as bootnode:
        folder = Path(name)
        command = [
            *(
                sys.executable,
                "-m",
                "codezero",
                "run",
                "preset=local",
                "probe.share=0",
                f"swarm={network.value}",
                f"rounds={num_rounds}",
            ),
            *(
                f"swarm.bootnodes=[{bootnode}]",
                f"swarm.pool={size}",
                "swarm.window=1",
                f"swarm.identity_path={folder}/n.pem",
            ),
            *(f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs", f"rollout.num_generations={G}"),
            *("swarm.listen=[/ip4/127.0.0.1/tcp/0]", *settings),
        ]
        with subprocess.Popen(command, stdout=sys.stderr) as node:
            peak_bytes, spent = watch(node)
        logs, status = folder / "logs", json.loads((folder / "state" / "status.json").read_text())
        if node.returncode:
            print(f"THE NODE ENDED WITH {node.returncode}")
        rounds = read_lines(logs / "rounds.jsonl")
        return Run(
            rounds=rounds,
            groups=[one for line in read_lines(logs / "groups.jsonl") for one in line["groups"] if one["external"]],
            processor_s=[processor_s(line, spent) for line in rounds],
            peak_bytes=peak_bytes,
            planned_bytes=status["planned_bytes"],
        )


def watch(node: subprocess.Popen[bytes]) -> tuple[int, list[tuple[float, float]]]:
    """Watches the node and its children until it ends. Returns their most memory, each page divided by those who share
    it, in bytes, and at several times (Unix, in seconds) the processor seconds spent so far."""
    peak, spent = 0, []
    while node.poll() is None:
        try:
            top = psutil.Process(node.pid)
            family = [top, *top.children(recursive=True)]
            peak = max(peak, sum(memory_of(one) for one in family))
            # the first four are user and system, its own and of its children that have ended
            spent.append((time.time(), sum(sum(one.cpu_times()[:4]) for one in family)))
        except psutil.NoSuchProcess:
            pass
        time.sleep(SAMPLE_S)
    return peak, spent


def processor_s(line: dict[str, Any], spent: Sequence[tuple[float, float]]) -> float:
    """Returns the processor seconds of a reported round."""
    ended_s = line["finished_at_s"]
    started_s = ended_s - sum(line["seconds"].values())
    within = [seconds for at_s, seconds in spent if started_s <= at_s <= ended_s]
    return within[-1] - within[0]


def memory_of(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss if sys.platform == "linux" else process.memory_info().rss
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def median_s(run: Run) -> float:
    return statistics.median(sum(line["seconds"].values()) for line in run.rounds)


def outcomes(groups: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each kind of hostile group that was judged."""
    by_kind: dict[str, Counter[str]] = {}
    for one in groups:
        kind = one["task"]["question"].split(" Write f()")[0]
        said = by_kind.setdefault(kind, Counter())
        for rollout in one["rollouts"]:
            cases = {case["outcome"]: case["reason"] for case in rollout["cases"]}
            said[f"p {rollout['p_correct']} {cases or rollout['outcome']}"[:120]] += 1
    for kind, said in sorted(by_kind.items()):
        yield f"  {kind}: {dict(said)}"


@contextmanager
def publishing(network: Network, make: MakeGroups, num_rounds: int, folder: Path) -> Iterator[str]:
    """Peers that publish again and again until it is left; yields the address of the first."""
    with ExitStack() as stack:
        size = len(make())
        peers: list[Peer] = []
        for index in range(-(-size // GROUPS_A_PEER)):
            peers.append(Peer(network, index, peers[0].address if peers else None, folder, stack))
        stop = threading.Event()

        def publish() -> None:
            while not stop.is_set():
                groups = make()
                for index, peer in enumerate(peers):
                    peer.publish(groups[index :: len(peers)], num_rounds)
                stop.wait(REPUBLISH_S)

        publish_on = threading.Thread(target=publish)
        publish_on.start()
        stack.callback(publish_on.join)
        stack.callback(stop.set)
        yield peers[0].address


class Peer:
    """A node of the network with an address of its own, which publishes whatever it is given."""

    def __init__(self, network: Network, index: int, bootnode: str | None, folder: Path, stack: ExitStack) -> None:
        config = SwarmConfig(
            network=network,
            listen=[f"/ip4/127.0.1.{1 + index}/tcp/0"],
            bootnodes=[bootnode] if bootnode else [],
        )
        key_file = folder / f"peer-{index}.pem"
        identity: Identity = load_or_create(key_file)[0]
        self._link = SwarmLink(config, key_file, folder / f"peer-{index}.json", rules_of(network))
        stack.callback(self._link.close)
        self._link.start()
        kind = NativeBoard if network is Network.native else GenrlBoard
        self._board = kind(config.name, identity, secrets.token_hex(8), config.window)
        self._rounds = [0] if network is Network.native else None
        self.address = self._link.addresses[0]

    def publish(self, groups: Sequence[RolloutGroup], num_rounds: int) -> None:
        """Publishes groups; in GenRL's format for every round, since records there belong to a round's number."""
        self._link.run(self._publish(groups, self._rounds or range(num_rounds + 2)))

    async def _publish(self, groups: Sequence[RolloutGroup], rounds: Sequence[int]) -> None:
        dht = await self._link.dht()
        if dht is not None:
            for number in rounds:
                round_id = RoundId(number=number)
                await self._board.publish(dht, round_id, self._board.pack(round_id, groups), 600.0)


if __name__ == "__main__":
    main()
