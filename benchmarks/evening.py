"""Measures whether a swarm goes on, and loses nothing, through an evening unattended in which things go wrong.

    python -m benchmarks.evening                      # 16 pieces of half an hour; stopped, the same command goes on
    python -m benchmarks.evening --pieces 2

Three nodes, a proposer and a test writer with real weights play on one machine beside a chain of their own. In each
piece the harms of `benchmarks.harms` come one after another, in an order drawn by its number; the next one comes when
the programs that the last one harmed have finished a round or a batch, and all run. Once a minute, memory, open files
and what the programs have saved are looked at; while a harm lasts, `codezero status`. The programs run on from piece to
piece, and a later sitting goes on with their files.

Needs root, for a file system of its own, a C compiler, for a clock that jumps, and anvil.

Figures: docs/measurements.md#an-evening-unattended
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks import harness
from benchmarks.harms import BOOTNODE, HARMS, NODES, REPORTS, Harm, Machine
from benchmarks.harness import Arm, Counts, Result, Target
from benchmarks.power import of_none
from benchmarks.splits import add_mbpp
from benchmarks.tables import markdown, outcome
from codezero.ledger.items import ItemState, Kind
from codezero.ledger.reading import read_pending, read_view

BENCHMARK = "evening"
PIECES, PIECE_S = 16, 1800.0
SAMPLE_S, LOOK_S, PATIENCE_S = 60.0, 2.0, 900.0
"""Seconds between two samples, between two looks at what has been finished, and until a program counts as stuck."""
ROUNDS = 45
"""Rounds that three nodes finish in a piece, about, for the power."""
SETTLED = 10
"""The least samples, minutes, of a quarter of the life of a process whose growth is told: a round's stages need from
1 to 3 GB, and a quarter is to have all of them."""
SETTINGS = (
    "tasks=mbpp",
    "swarm.num_local=1",
    "train.memory_limit_gib=5",
    "rollout.num_generations=4",
    "rollout.max_new_tokens=64",
    "probe.share=0",
    "proposer.batch_size=2",
    "proposer.max_new_tokens=256",
    "proposer.patience_s=30",
    "verifier.batch_size=1",
    "verifier.num_candidates=2",
    "verifier.num_generations=4",
)
"""Small rounds, so that three nodes on two cores finish many of them. The limit is of each program: five of them fit
into 24 GiB because they map the same file of weights, which the plan of each counts."""
TARGETS = (
    Target(figure="growth of memory", at_most=0.02),
    Target(figure="rounds lost", at_most=0.0),
    Target(figure="points lost or counted twice", at_most=0.0),
)
Sample = dict[str, tuple[int, int, int]]
"""By program: process id, memory in MiB, each page divided by those who share it, and open files."""


class Evening:
    """Plays pieces on a running machine, and looks at what its programs have saved."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._saved: dict[str, dict[int, str]] = {name: {} for name in NODES}
        """Of each node, the lines of the finished rounds that its newest checkpoint includes."""

    def piece(self, name: str) -> Counts:
        """Plays a piece; returns its harms, samples, losses, rounds, and the sizes of files."""
        began_s = time.monotonic()
        harms: list[dict[str, Any]] = []
        samples: list[Sample] = []
        lost: list[str] = []
        order = random.Random(name).sample(list(HARMS), len(HARMS))

        def sample() -> None:
            while time.monotonic() >= began_s + SAMPLE_S * len(samples):
                samples.append(self._sample())
                lost.extend(self.saved_and_lost())

        before = self._finished()
        self._wait(lambda: self._went_on(before, NODES), sample)
        for what in order:
            if time.monotonic() - began_s > PIECE_S:
                break
            print(f"    {time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
            harms.append({"what": what, **self._suffer(HARMS[what], sample)})
            print(f"      {harms[-1]}", file=sys.stderr, flush=True)
        return {
            "minutes": round((time.monotonic() - began_s) / 60, 1),
            "harms": harms,
            "samples": samples,
            "finished": {one: after - before[one] for one, after in self._finished().items()},
            "lost": lost,
            "points": self._points(),
            "log_bytes": self._log_bytes(),
        }

    def _suffer(self, harm: Harm, sample: Callable[[], None]) -> dict[str, Any]:
        """Returns the seconds from the end of a harm until all that it harmed had gone on, None if they did not, and
        what the status said of them meanwhile."""
        began_s = time.monotonic()
        harm.begin(self._machine)
        self._wait(lambda: False, sample, harm.lasts_s or 15.0)
        said = self._said(time.monotonic() - began_s)
        harm.end(self._machine)
        ended_s, before = time.monotonic(), self._finished()
        went_on = self._wait(lambda: self._went_on(before, harm.harmed), sample)
        return {"after_s": round(time.monotonic() - ended_s) if went_on else None, "said": said}

    def _wait(self, is_over: Callable[[], bool], sample: Callable[[], None], most_s: float = PATIENCE_S) -> bool:
        until = time.monotonic() + most_s
        while time.monotonic() < until:
            self._machine.require_running()
            sample()
            if is_over():
                return True
            time.sleep(LOOK_S)
        return False

    def _finished(self) -> dict[str, int]:
        """Returns the number of finished rounds or batches of each program."""
        return {name: len(_lines(self._machine.swarm / name / "logs" / file)) for name, file in REPORTS.items()}

    def _went_on(self, before: Mapping[str, int], names: Sequence[str]) -> bool:
        now = self._finished()
        return all(now[name] > before[name] for name in names) and all(map(self._machine.family, REPORTS))

    def _sample(self) -> Sample:
        found = {}
        for name in (*REPORTS, BOOTNODE, "swarm", "chain"):
            family = self._machine.family(name)
            if name == "swarm":
                family = family[:1]
            try:
                memory = sum(one.memory_full_info().pss for one in family)
                if family:
                    found[name] = family[0].pid, memory >> 20, sum(one.num_fds() for one in family)
            except psutil.NoSuchProcess:
                pass
        return found

    def saved_and_lost(self) -> list[str]:
        """Returns the rounds, and the checkpoints, that nodes had saved at the last look and have lost since."""
        lost = []
        for name, saved in self._saved.items():
            home = self._machine.swarm / name
            newest = max((int(path.name[6:]) for path in home.glob("state/checkpoints/round-*[0-9]")), default=0)
            lines = {json.loads(line)["round"]: line for line in _lines(home / "logs" / "rounds.jsonl")}
            lost += [f"{name} round {number}" for number, line in saved.items() if lines.get(number) != line]
            if newest < max(saved, default=0):
                lost.append(f"{name} checkpoint {max(saved)}, {newest} is left")
            saved.clear()
            saved.update((number, line) for number, line in lines.items() if number <= newest)
        return lost

    def _said(self, within_s: float) -> dict[str, str]:
        """Returns what the status says to be wrong with each program, with warnings of the last seconds."""
        command = (sys.executable, "-m", "codezero", "status", "--json", str(self._machine.swarm))
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return {run["name"]: trouble(run, within_s) for run in json.loads(shown)["runs"]} if shown else {}

    def _points(self) -> dict[str, dict[str, float]]:
        """Returns, by node, the points that it has earned, those that its outbox has, sent or not, and by how many the
        chain's total differs from those that the outbox knows to be there, and may be."""
        boxes = {name: read_pending(self._machine.swarm / name / "state" / "outbox.sqlite") for name in NODES}
        rewards = {name: [one for one in box.items if one.kind is Kind.REWARD] for name, box in boxes.items()}
        peers = {name: items[0].scope.peer_id for name, items in rewards.items() if items}
        there = dict(zip(peers, self._machine.on_chain(list(peers.values())), strict=True))
        found = {}
        for name in NODES:
            done = sum(one.reward for one in rewards[name] if one.state is ItemState.DONE)
            sent = [one.reward for one in rewards[name] if one.state is ItemState.SENT]
            possible = [done + sum(sent[:count]) for count in range(len(sent) + 1)]
            found[name] = {
                "earned": round(read_view(self._machine.swarm / name / "state").earned, 2),
                "credited": round(sum(one.reward for one in rewards[name]) + sum(p for _, p in boxes[name].owed), 2),
                "off": min(abs(there.get(name, 0) - one) for one in possible),
            }
        return found

    def _log_bytes(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for name in (*REPORTS, BOOTNODE):
            home = self._machine.swarm / name
            for path in (home / "output.log", *home.glob("logs/*")):
                found[path.name] += path.stat().st_size if path.is_file() else 0
        return dict(found)


def _lines(path: Path) -> list[str]:
    """Returns the whole lines of a file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def trouble(run: Mapping[str, Any], within_s: float) -> str:
    """Returns what the status says to be wrong with a program, with a warning of the last seconds; empty if nothing."""
    if not run["running"]:
        return "not running"
    status, warning = run["status"], run["last_warning"]
    if status["ledger"]:
        return f"ledger: {_general(status['ledger'])}"
    is_new = warning is not None and warning["at_s"] > status["updated_at_s"] - within_s
    return _general(warning["text"]) if is_new else ""


def _general(text: str) -> str:
    """Returns a message without what differs from time to time: paths, addresses and numbers."""
    return re.sub(r"(/[\w.-]+)+|0x[0-9a-f]+|\d+(\.\d+)?", "…", text)[:120]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A process of a program, in the order of the pieces."""

    program: str
    pieces: tuple[str, ...]
    minutes: int
    memory: float
    files: float
    """The growth of memory and of open files: the most in the last quarter of its life to the most in the second, less
    1."""


def lives(counts: Mapping[str, Counts]) -> list[Life]:
    """Returns the processes that lived long enough for their growth to be told."""
    samples: dict[tuple[str, int], list[tuple[str, int, int]]] = {}
    for piece, found in counts.items():
        for sample in found["samples"]:
            for program, (process, *values) in sample.items():
                samples.setdefault((program, process), []).append((piece, *values))
    return [
        Life(
            program=program,
            pieces=tuple(dict.fromkeys(one[0] for one in found)),
            minutes=len(found),
            memory=_growth([one[1] for one in found]),
            files=_growth([one[2] for one in found]),
        )
        for (program, _), found in samples.items()
        if len(found) >= 4 * SETTLED
    ]


def _growth(values: Sequence[int]) -> float:
    quarter = len(values) // 4
    return max(values[-quarter:]) / max(values[quarter : 2 * quarter]) - 1


def table(results: Mapping[str, Result]) -> str:
    """Returns the harms, then what was lost, then memory, open files and logs."""
    (result,) = results.values()
    counts, (grown, rounds_lost, points_lost) = result.counts, result.targets
    harms = []
    for what in HARMS:
        met = [harm for found in counts.values() for harm in found["harms"] if harm["what"] == what]
        went_on = [harm["after_s"] for harm in met if harm["after_s"] is not None]
        said = Counter(text for harm in met for name, text in harm["said"].items() if text)
        after = f"{median(went_on):.0f}, at most {max(went_on)}" if went_on else ""
        harms.append(
            [what, str(len(met)), str(len(went_on)), after, "; ".join(text for text, _ in said.most_common(2))]
        )
    lost = [one for found in counts.values() for one in found["lost"]]
    off_by_node: dict[str, float] = {}  # the points are those of a node's whole life, so a loss is in all later pieces
    for found in counts.values():
        for name, one in found["points"].items():
            now = one["off"] + abs(one["credited"] - one["earned"])
            off_by_node[name] = max(off_by_node.get(name, 0.0), now)
    off = sum(off_by_node.values())
    finished = sum((Counter(found["finished"]) for found in counts.values()), Counter())
    hours = sum(found["minutes"] for found in counts.values()) / 60
    sums = [
        ["hours", f"{hours:.1f}"],
        *([f"rounds or batches of {name}", str(count)] for name, count in finished.items()),
        ["saved rounds lost", f"{len(lost)}, {outcome(rounds_lost, len(lost), '{:.0f}')}"],
        ["points lost or counted twice", f"{off:.2f}, {outcome(points_lost, off, '{:.0f}')}"],
    ]
    for life in lives(counts):
        verdict = outcome(grown, life.memory, "{:.0f} %", 100)
        text = f"memory {100 * life.memory:+.1f} %, {verdict}; open files {100 * life.files:+.0f} %"
        sums.append([f"{life.program}, {life.minutes} minutes of one process, {' and '.join(life.pieces)}", text])
    logs = list(counts.values())[-1]["log_bytes"]
    sums.append(
        [
            "logs of all programs at the end",
            ", ".join(
                f"{name} {size / 1e6:.1f} MB" for name, size in sorted(logs.items(), key=lambda one: -one[1])[:5]
            ),
        ]
    )
    first = markdown(
        ["what went wrong", "times", "went on", "seconds until it had", "status of those with trouble"], harms
    )
    return f"{first}\n\n{markdown(['over all', ''], sums)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(BENCHMARK, __doc__)
    add_mbpp(parser)
    parser.add_argument("--pieces", type=int, default=PIECES, metavar="N", help=f"of half an hour (default {PIECES})")
    options = parser.parse_args(arguments)
    arm = Arm(
        benchmark=BENCHMARK,
        name=BENCHMARK,
        settings={"settings": list(SETTINGS), "harms": list(HARMS)},
        seed=0,
        pieces=[f"piece {number + 1}" for number in range(options.pieces)],
        power=[of_none("rounds after which something saved is lost", ROUNDS * options.pieces, "rounds")],
        targets=TARGETS,
    )
    with Machine(options.state / BENCHMARK, [*SETTINGS, f"tasks.mbpp.path={options.mbpp.absolute()}"]) as machine:
        result = harness.run(arm, Evening(machine).piece, options)
    print(table({BENCHMARK: result}))


if __name__ == "__main__":
    main()
