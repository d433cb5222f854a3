"""A node as a child process: `codezero run` or `swarm up` with given settings, in blocks of rounds, and its logs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.harness import ROOT, Counts
from codezero.harness.bench import execute
from codezero.observe import probes
from codezero.observe.groups_file import SeenGroup, SeenRollout, SeenRound
from codezero.observe.probes import ProbeReport
from codezero.runtime.stop import GRACE_S, SAVE_S
from codezero.tasks.testcases import read_tests
from codezero.views.groups import GroupsIndex
from codezero.views.runs import JsonLines
from codezero.workers import Workers

KEPT = (
    *("round", "reward_mean", "average_at_k", "pass_at_k", "mixed", "num_tokens", "skipped", "grad_norm"),
    *("clip_fraction", "sampler_gap", "sample_size", "num_external_groups"),
)
"""The fields of a round's report that results keep, beside its seconds."""
LOOK_S = 2.0
CASE_S = 6.0


class Node:
    """A node in a folder, which plays rounds up to a given one. It runs while blocks are asked for, ends at that round,
    and is stopped, as by Ctrl-C, with the `with` statement or this process."""

    def __init__(self, settings: Mapping[str, Any], folder: Path, last_round: int, num_nodes: int = 1) -> None:
        """If there are several nodes, the folder is the first one's, in that of their swarm."""
        self._settings, self._folder, self._last_round, self._num_nodes = settings, folder, last_round, num_nodes
        self._process: subprocess.Popen[bytes] | None = None
        self._lost: list[str] = []
        """Lines of rounds after the newest checkpoint, which the node plays again."""

    def __enter__(self) -> Node:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Waits for the last checkpoint; without an error for the last round before that."""
        if kind is None and self._process is None and 0 < saved(self._folder) < self._last_round:
            self._start()  # the rounds were logged, but a kill came before their checkpoint
        if self._process is None or self._process.stdin is None:
            return
        if kind is None:
            self._process.wait()
        self._process.stdin.close()
        self._process.wait(GRACE_S + SAVE_S)

    def block(self, name: str) -> Counts:
        """The rounds of a piece such as `rounds 1-16`, by field."""
        first, last = bounds(name)
        if self._process is None and saved(self._folder) < self._last_round:
            self._start()
        while len(reports := self._reports()) < last:
            if self._process is None or self._process.poll() is not None:
                raise SystemExit(
                    f"codezero run ended after {len(reports)} of {last} rounds: {self._folder}/logs/swarm.log says "
                    "why; the same command goes on"
                )
            time.sleep(LOOK_S)
        block = reports[first - 1 : last]
        stages = dict.fromkeys(stage for one in block for stage in one["seconds"])
        return {
            **{key: [_short(one[key]) for one in block] for key in KEPT},
            "seconds": {stage: [_short(one["seconds"].get(stage, 0.0)) for one in block] for stage in stages},
        }

    def _start(self) -> None:
        folder = self._folder.absolute()
        settings, rounds_left = dict(self._settings), self._last_round - saved(folder)
        words = ["run"]
        if self._num_nodes > 1:
            words = ["swarm", "up", "--nodes", str(self._num_nodes), "--proposers", "0", "--rounds", str(rounds_left)]
            words += ["--folder", str(folder.parent)]
        else:
            settings |= {"state_dir": folder / "state", "tracking.log_dir": folder / "logs", "rounds": rounds_left}
            settings["swarm.identity_path"] = folder / "swarm.pem"
        command = [sys.executable, "-m", "codezero", *words, "--stop-with-parent", *map("=".join, _texts(settings))]
        folder.mkdir(parents=True, exist_ok=True)
        self._lost = self._lines()[saved(folder) :]
        # In a session of its own, since a second signal, such as the terminal's own, would end it without a checkpoint.
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True)

    def _reports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._lines() if line not in self._lost]

    def _lines(self) -> list[str]:
        path = self._folder / "logs" / "rounds.jsonl"
        return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def _texts(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in settings.items()]


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def bounds(name: str) -> tuple[int, int]:
    """The first and the last round of a piece."""
    first, _, last = name.removeprefix("rounds ").partition("-")
    return int(first), int(last)


def saved(folder: Path) -> int:
    """The round of the newest checkpoint; 0 without one."""
    rounds = sorted((folder / "state" / "checkpoints").glob("round-*"))
    return int(rounds[-1].name.removeprefix("round-")) if rounds else 0


def weights_of(folder: Path, checkpoint: str) -> Path:
    """The file with the newest or the best weights of a node."""
    name = checkpoint if checkpoint == "best" else f"round-{saved(folder):08d}"
    return folder / "state" / "checkpoints" / name / "learner.pt"


def probed(folder: Path) -> Counts:
    """Returns the results of the node's probes: (round, share right at T=1, share right greedily) of each pass, and
    its words."""
    path = folder / "logs" / probes.NODE.file
    if not path.exists():
        return {"passes": [], "text": ""}
    found = probes.learning(JsonLines(path, ProbeReport).read())
    return {
        "passes": [[one.last_round, _short(one.sampled), _short(one.greedy)] for one in found.passes],
        "text": found.text,
    }


def attempts(folder: Path, pieces: list[tuple[int, int]]) -> Counts:
    """Eight numbers for each block of rounds, as far as the logs go back: the node's own attempts; those that were
    masked; of the others the sum of the predicted probabilities, those predicted right, those right when executed,
    those that are both, those at tasks of which it has seen no group before, own or a peer's, and those of these that
    are right when executed. Logs that do not go back to the first round cannot tell the last two, which are left out
    then."""
    found = {f"{first}-{last}": [0, 0, 0.0, 0, 0, 0, 0, 0] for first, last in pieces}
    truth: dict[tuple[str, str], bool] = {}
    drawn: set[str] = set()
    rounds = _rounds(folder)
    with Workers(1) as workers:
        for one in rounds:
            block = next((found[f"{a}-{b}"] for a, b in pieces if a <= one.round <= b), None)
            own = (group for group in one.groups if not group.external)
            tried = [(group, rollout) for group in own for rollout in group.rollouts]
            if block is None:
                continue
            _execute([pair for pair in tried if pair[1].reward is not None], truth, workers)
            for group, rollout in tried:
                block[0] += 1
                if rollout.reward is None:
                    block[1] += 1
                    continue
                p, right = rollout.p_correct or 0.0, truth[rollout.text, group.task.tests]
                is_new = group.task.id not in drawn
                added = (p, p >= 0.5, right, p >= 0.5 and right, is_new, is_new and right)
                block[2:] = [one + more for one, more in zip(block[2:], added, strict=True)]
            drawn |= {group.task.id for group in one.groups}
    told = 8 if rounds and rounds[0].round == 1 else 6
    return {name: [_short(one) for one in block[:told]] for name, block in found.items() if block[0]}


def _execute(tried: list[tuple[SeenGroup, SeenRollout]], truth: dict[tuple[str, str], bool], workers: Workers) -> None:
    """Adds to `truth` what the attempts, by text and tests, come to when executed in the sandbox."""
    new = dict.fromkeys(key for group, one in tried if (key := (one.text, group.task.tests)) not in truth)
    suites = {tests: read_tests(workers, tests) for _, tests in new}
    executed = execute([(text, "", suites[tests]) for text, tests in new], CASE_S)
    truth |= {key: row["passed"] for key, row in zip(new, executed, strict=True)}


def _rounds(folder: Path) -> list[SeenRound]:
    """The logged rounds in their order; of one that was played twice the last."""
    index = GroupsIndex(folder / "logs")
    return [found for number in index.rounds() if (found := index.read(number)) is not None]
