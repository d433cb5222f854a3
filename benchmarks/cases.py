"""Measures whether a test writer learns by `codezero verify`, and whether it helps a solver.

    python -m benchmarks.cases                                # two hours on two cores; may be stopped and goes on
    python -m benchmarks.cases --seed 1                       # another run

The writer is measured by what it wrote first against what it wrote last. Its problems are MBPP's 601 to 974, of which
none comes twice before all have come, so every answer is judged on a problem that the writer has not learnt from. The
solver beside it is measured on problems 11 to 260 by execution, like the runs of `benchmarks.learning`: before, and
against one alone that sampled fewer tokens, and one that sampled more. Its learner's settings are theirs, but for
tasks, which are drawn equally often.

A piece is `BLOCK` batches, each [answers judged, valid ones, those whose diagnosis is right, mean reward, mean reward
of cases that everybody passes, seconds, attempts, right ones, second attempts, right ones, tokens of all attempts]; or
an evaluation of the solver.

Figures: docs/measurements.md#whether-a-test-writer-learns
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from benchmarks import harness, learning
from benchmarks.harness import ROOT, Arm, Counts, Result, Target
from benchmarks.learnt import GREEDY_PIECE, SAMPLED, SAMPLED_PIECE, gained, told
from benchmarks.power import of_mean, of_shares
from benchmarks.splits import Split, add_mbpp
from benchmarks.tables import markdown, share
from benchmarks.training import bounds
from codezero.observe.probes import percent
from codezero.reports import CasesReport

BENCHMARK = "cases"
BLOCK, BATCHES = 4, 16
START = 0.05
"""The share of valid answers before, for the power."""
OF_SOLVERS = ("rollout.engine", "rollout.max_new_tokens", "train.")
PAIR: Mapping[str, Any] = {
    **{key: value for key, value in learning.LEARNING.items() if key.startswith(OF_SOLVERS)},
    "model.name": learning.MODEL,
    "verifier.batch_size": 4,
    "verifier.num_candidates": learning.LEARNING["rollout.num_generations"],
    "verifier.num_generations": 8,
    "verifier.learning_rate": 1e-4,
    "verifier.train_solver": True,
    "probe.share": 0,
}
EVALUATIONS = (GREEDY_PIECE, SAMPLED_PIECE)
ALONE = ("alone", "double")
"""The runs of `benchmarks.learning` that a pair is compared with."""
VALID = Target(figure="answers whose cases are all valid, of the last quarter", at_least=0.3)
PARTS = 4
"""Parts of a run that are compared."""


def piece_of(settings: Sequence[str], folder: Path, options: Any, name: str) -> Counts:
    """Has the writer learn from the batches of a piece such as `rounds 1-4`, or the solver solve held-out problems."""
    if name in EVALUATIONS:
        return _evaluated(folder, options, name)
    first, last = bounds(name)
    log = folder / "logs" / "cases.jsonl"
    if (left := last - len(_read(log))) > 0:
        paths = (f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs")
        command = [sys.executable, "-m", "codezero", "verify", "--batches", str(left), *settings, *paths]
        subprocess.run(command, cwd=ROOT, check=False)
    if len(reports := _read(log)) < last:
        raise SystemExit("codezero verify ended early, for the reason above; the same command goes on")
    return [_counts(one) for one in reports[first - 1 : last]]


def _evaluated(folder: Path, options: Any, name: str) -> Counts:
    """Right solutions of the solver by problem, as `benchmarks.learning` counts them."""
    state = folder / "state" / "verifier"
    asked: dict[str, Any] = {"model": learning.MODEL, "split": Split.report.name, "problems": learning.data(options)}
    samples, temperature = (1, 0) if name == GREEDY_PIECE else (learning.SAMPLES, 1)
    asked |= {"max_new_tokens": learning.TOKENS, "seed": 0, "samples": samples, "temperature": temperature}
    return learning.solved(asked, Split.report, ["--checkpoint", str(state)], folder / name, options)


def _read(log: Path) -> list[CasesReport]:
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []  # without a line that a kill has torn
    return [msgspec.json.decode(line, type=CasesReport) for line in lines]


def _counts(one: CasesReport) -> Counts:
    judged = one.num_answers - one.num_masked
    valid, right = (round((part or 0.0) * judged) for part in (one.valid, one.right))
    rewards = (round(part or 0.0, 4) for part in (one.reward_mean, one.reward_approving))
    solver = one.solver
    assert solver is not None  # by verifier.train_solver
    shares = ((solver.num_attempts, solver.right), (solver.num_second, solver.second_right))
    attempts = [figure for count, part in shares for figure in (count, round((part or 0.0) * count))]
    return [judged, valid, right, *rewards, round(sum(one.seconds.values()), 1), *attempts, solver.num_tokens]


def table(results: Mapping[str, Result]) -> str:
    """Returns what the batches of each run came to by quarters, and what its solver has learnt."""
    rows = []
    for name, result in results.items():
        batches = _batches(result)
        for part in range(PARTS):
            first, last = (len(batches) * edge // PARTS for edge in (part, part + 1))
            some = batches[first:last]
            rewards = (f"{fmean(one[column] for one in some):.2f}" for column in (3, 4))
            rows.append(
                [
                    name,
                    f"{first + 1} to {last}",
                    str(sum(one[0] for one in some)),
                    share(((one[1], one[0]) for one in some), VALID if part == PARTS - 1 else None),
                    share((one[2], one[0]) for one in some),
                    *rewards,
                    f"{sum(one[5] for one in some) / 60:.0f}",
                ]
            )
    header = ["arm", "batches", "answers", "cases all valid", "diagnosis right", "mean reward", "of approving always"]
    written = markdown([*header, "minutes"], rows)
    pairs = {name: one for name, one in results.items() if set(EVALUATIONS) <= one.counts.keys()}
    return "\n\n".join([written, *(_solvers(*pair, harness.results(learning.BENCHMARK)) for pair in pairs.items())])


def _solvers(name: str, pair: Result, others: Mapping[str, Result]) -> str:
    """Returns the gain of a pair's solver, and its differences to solvers that learnt alone."""
    batches = _batches(pair)
    first, second, right, tokens = (sum(one[column] for one in batches) for column in (6, 8, 9, 10))
    rows = [[name, f"{first} and {second} second ones, {percent(right / max(second, 1))} right", tokens]]
    for alone in ALONE:
        trained = others[f"{alone}-train"]
        blocks = trained.counts.values()
        attempts = trained.settings["rollouts a round"] * sum(len(block["round"]) for block in blocks)
        rows.append([f"{name} against {alone}", str(attempts), sum(sum(block["num_tokens"]) for block in blocks)])
    for row, base in zip(rows, ("start-report", *(f"{name}-newest" for name in ALONE)), strict=True):
        sampled, greedy, _ = gained(others[base], [pair])
        row[2] = f"{row[2] / 1000:.0f}"
        row += [told(before, after, change) for change, before, after in (sampled, greedy)]
    return markdown(["solver", "attempts", "their tokens, thousands", "pass@1 at T=1", "greedy"], rows)


def _batches(result: Result) -> list[Counts]:
    return [one for piece, found in result.counts.items() if piece not in EVALUATIONS for one in found]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(BENCHMARK, __doc__)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed is another run (default 0)")
    add_mbpp(parser)
    parser.set_defaults(quick=False)
    options = parser.parse_args(arguments)
    blocks = [f"rounds {first + 1}-{first + BLOCK}" for first in range(0, BATCHES, BLOCK)]
    num_problems = BATCHES * PAIR["verifier.batch_size"]
    arm = Arm(
        benchmark=BENCHMARK,
        name="pair" + f"-seed{options.seed}" * (options.seed > 0),
        settings={"mbpp": harness.digest_of(options.mbpp), **PAIR},
        seed=options.seed,
        pieces=[*blocks, *EVALUATIONS],
        power=[  # answers about one problem are not independent
            of_shares("answers whose cases are all valid", num_problems // PARTS, START, "problems"),
            of_mean(SAMPLED, len(Split.report.ids), learning.SPREAD),
        ],
        targets=[VALID],
    )
    words = [f"{key}={value}" for key, value in PAIR.items()]
    words += [f"seed={options.seed}", "tasks=mbpp", f"tasks.mbpp.path={options.mbpp.absolute()}", "tracking.view=off"]
    folder = (options.state / BENCHMARK / arm.name).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    harness.run(arm, partial(piece_of, words, folder, options), options)
    print(table(harness.results(BENCHMARK, options.results)))


if __name__ == "__main__":
    main()
