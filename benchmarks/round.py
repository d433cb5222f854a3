"""Compares a round with GenRL 0.3.0's operations, and its learning with that of an earlier codezero, on the CPU.

    python -m benchmarks.round g2 g4 g8                   # 15 minutes of processor time, 13 GiB
    python -m benchmarks.round lora full --before FOLDER  # 5 minutes of processor time, 7 GiB

With the catalogue's 0.5B model in float32, one side after the other, in work that is the same for both:

- `g2`, `g4`, `g8`: a round of two built-in problems with G attempts each, every one exactly `TOKENS` tokens long, end
  tokens kept from ending it; full fine-tuning. The reference takes G passes over the batch of prompts, makes an
  optimizer step every two sequences, recomputes activations and keeps Adam's moments in float32. This node makes one
  step a round and keeps them in bfloat16; `equal steps` makes as many as the reference. Both learn from the same texts,
  windows of the built-in solutions that survive re-tokenising, with fixed rewards. This node's checkpoint, written
  while it waits, and its judge, which reads every attempt, are measured too; the reference has neither.
- `lora`, `full`: the update from such texts of one problem, four attempts, here and by the codezero of a checkout in
  FOLDER, each in a process of its own.

A first short round, not counted, allocates the optimizer's state. The setting of the C library's allocator cannot be
undone, so a reference that is measured after it has that too.

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import harness, reference
from benchmarks.harness import CACHE, MODEL, ROOT, Arm, Result, Target
from benchmarks.measure import free_memory, measure
from benchmarks.power import of_mean
from benchmarks.sides import PLAIN, Own, Reference, Work
from benchmarks.tables import markdown, outcome
from codezero.llm import device as devices
from codezero.llm import store
from codezero.tasks.problems import load_problems

TOKENS, WARM_UP_TOKENS = 64, 8
LEARN_GENERATIONS, LEARN_TOKENS, PAIRS = 4, 64, 3
FASTER = Target(figure="learn, times faster", at_least=1.5)
METHODS = ("full", "lora")
PHASES = ("solve", "learn", "judge", "save")
HALF = Target(figure="learning, share of the time before", at_most=0.5)


class Rounds:
    """The sides of `g2`, `g4` and `g8`, one in memory at a time."""

    def __init__(self, folder: Path, generations: int, tokens: int, state: Path) -> None:
        self._folder, self._state = folder, state
        tasks = tuple(problem.task for problem in load_problems(2, 2)[1:3])
        self._work = Work(tasks=tasks, num_generations=generations, num_tokens=tokens)
        self._warm_up = replace(self._work, num_tokens=min(tokens, WARM_UP_TOKENS))

    def measure(self, piece: str) -> dict[str, dict[str, float]]:
        """Costs by side and phase."""
        found = {"reference": self._reference()}
        free_memory()
        found |= self._own()
        free_memory()
        return found

    def _reference(self) -> dict[str, Any]:
        torch.manual_seed(0)
        side = Reference(reference.GenrlTrainer(self._folder, self._work.num_generations))
        side.solve(self._warm_up)
        side.learn(self._warm_up)
        return {
            "solve": self._cost(lambda: side.solve(self._work)),
            "learn": self._cost(lambda: side.learn(self._work)),
        }

    def _own(self) -> dict[str, dict[str, Any]]:
        own, work, num_chats = Own(self._folder), self._work, len(self._work.tasks) * self._work.num_generations
        own.judge(self._warm_up)
        costs = {"judge": self._cost(lambda: own.judge(work), num_chats)}
        own.solve(self._warm_up)
        costs["solve"] = self._cost(lambda: own.solve(work))
        found = {}
        for side, config in {
            "codezero": PLAIN,
            "equal steps": replace(PLAIN, minibatch_size=reference.MINIBATCH),
        }.items():
            own.start_learning(config, work.num_tokens)
            own.learn(self._warm_up)
            found[side] = {**costs, "learn": self._cost(lambda: own.learn(work))}
        found["codezero"]["save"] = asdict(measure(lambda: own.save(self._state / "round-checkpoint"))[1])
        return found

    def _cost(self, phase: Callable[[], int], wanted: int = 0) -> dict[str, float]:
        """Returns the cost of a phase, which says how much it did: all tokens of the round, or `wanted`."""
        done, cost = measure(phase)
        if done != (wanted or self._work.total_tokens):
            raise SystemExit(f"a phase did {done} instead of {wanted or self._work.total_tokens}: nothing to compare")
        return asdict(cost)


def learn_alone(method: str, tokens: int, folder: Path) -> dict[str, float]:
    """The cost of one update by the code that this process runs, `lora` or `full`."""
    tasks = (load_problems(2, 2)[1].task,)
    work = Work(tasks=tasks, num_generations=LEARN_GENERATIONS, num_tokens=tokens)
    own = Own(folder, lora=method == "lora")
    own.start_learning(PLAIN, tokens)
    own.learn(replace(work, num_tokens=min(tokens, WARM_UP_TOKENS)))
    return asdict(measure(lambda: own.learn(work))[1])


def learn_pair(options: Any, method: str, piece: str) -> dict[str, dict[str, float]]:
    """Both codes' costs, in processes of their own; the first of a pair is the last of the next."""
    before: Path = options.state / "round-before"  # whose codezero comes before that beside this file
    before.mkdir(parents=True, exist_ok=True)
    (before / "codezero").unlink(missing_ok=True)
    (before / "codezero").symlink_to(options.before.resolve() / "codezero")
    codes, found = {"now": ROOT, "before": before}, {}
    for side in sorted(codes, reverse=int(piece) % 2 == 1):
        command = [sys.executable, "-m", "benchmarks.round", method, "--alone", "--model", options.model]
        command += ["--tokens", str(options.tokens or LEARN_TOKENS)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=codes[side], env=environment, check=True, capture_output=True, text=True)
        found[side] = json.loads(done.stdout.splitlines()[-1])
        print(f"  {method} {piece}, {side}: {found[side]['cpu_s']:.1f} CPU s", file=sys.stderr, flush=True)
    return found


def arm(name: str, options: Any) -> Arm:
    settings = {"model": options.model, "threads": torch.get_num_threads()}
    if name in METHODS:
        pieces = [str(number) for number in range(1, PAIRS + 1)]
        commit = ("git", "-C", str(options.before), "rev-parse", "HEAD")
        settings["before"] = subprocess.run(commit, check=True, capture_output=True, text=True).stdout.strip()
        settings |= {"generations": LEARN_GENERATIONS, "tokens": options.tokens or LEARN_TOKENS}
        targets, power = (HALF,), of_mean("share of the time before", PAIRS, 0.05, "pairs")
    else:
        pieces, targets = ["1"], (FASTER,)
        settings |= {"generations": int(name[1:]), "tokens": options.tokens or TOKENS}
        power = of_mean("times faster", 1, 0.2, "pair")
    return Arm(benchmark="round", name=name, settings=settings, seed=0, pieces=pieces, power=(power,), targets=targets)


def round_table(results: Mapping[str, Result]) -> str:
    """Each side's processor seconds by phase, and how many times less it needs than the reference."""
    rows = []
    for name, result in results.items():
        if name in METHODS:
            continue
        found = result.counts["1"]
        base = found["reference"]
        for side, costs in found.items():
            cells = [f"{costs[phase]['cpu_s']:.1f}" if phase in costs else "-" for phase in PHASES]
            peak = max(costs[phase]["peak_bytes"] for phase in ("solve", "learn")) / 2**30
            rows.append([f"{name[1:]}, {side}", *cells, f"{peak:.1f}", *_faster(base, costs, side)])
    return markdown(["G, side", *(f"{phase}, CPU s" for phase in PHASES), "GiB", "learn", "solve + learn", "all"], rows)


def _faster(base: Mapping[str, Any], costs: Mapping[str, Any], side: str) -> list[str]:
    if side == "reference":
        return ["1", "1", "1"]
    ratios = [
        sum(base[phase]["cpu_s"] for phase in phases & base.keys()) / sum(costs[phase]["cpu_s"] for phase in phases)
        for phases in ({"learn"}, {"solve", "learn"}, costs.keys())
    ]
    shown = [f"{ratio:.2f}" for ratio in ratios]
    shown[0] += f", {outcome(FASTER, ratios[0], '{:.1f}')}"
    return shown


def learn_table(results: Mapping[str, Result]) -> str:
    """Medians over pairs, by method."""
    rows = []
    for method, result in results.items():
        pairs = result.counts.values()
        cpu = {side: statistics.median(pair[side]["cpu_s"] for pair in pairs) for side in ("before", "now")}
        ratios = sorted(pair["now"]["cpu_s"] / pair["before"]["cpu_s"] for pair in pairs)
        middle = statistics.median(ratios)
        share = f"{middle:.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}], {outcome(HALF, middle, '{:.1f}')}"
        rows.append([method, f"{cpu['before']:.0f}", f"{cpu['now']:.0f}", share])
    return markdown(["method", "before, CPU s", "now, CPU s", "share, least and most of the pairs"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("round", __doc__)
    parser.add_argument("arms", nargs="+", choices=("g2", "g4", "g8", *METHODS))
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="the checkout that learning is compared with")
    parser.add_argument("--model", default=MODEL, help="catalogue name or folder")
    parser.add_argument("--tokens", type=int, default=0, help="of every attempt; 0 for what the results are of")
    parser.add_argument("--alone", action="store_true", help="only print what one update costs, here")
    options = parser.parse_args(arguments)
    if options.before is None and not options.alone and (compared := [one for one in options.arms if one in METHODS]):
        parser.error(f"{compared[0]} compares two checkouts: name the other one with --before FOLDER")
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing_enable")  # the reference's name for it
    devices.set_threads(int(os.environ.get("OMP_NUM_THREADS", "0")))
    folder = store.prepare(options.model, CACHE)
    if options.alone:
        print(json.dumps(learn_alone(options.arms[0], options.tokens, folder)))
        return
    for name in options.arms:
        one = arm(name, options)
        if name in METHODS:
            harness.run(one, partial(learn_pair, options, name), options)
        else:
            rounds = Rounds(folder, one.settings["generations"], one.settings["tokens"], options.state)
            harness.run(one, rounds.measure, options)


if __name__ == "__main__":
    main()
