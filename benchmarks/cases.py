"""Does a test writer learn? Trains one by `codezero verify`, and compares what it wrote first with what it wrote last.

    python -m benchmarks.cases                                # some hours on two cores; may be stopped and goes on
    python -m benchmarks.cases --batches 16                   # so many first, and more by a larger number later
    python -m benchmarks.cases --rate 1e-5

Its problems are MBPP's 601 to 974, of which none comes twice before all have come, so every answer is judged on a
problem that the writer has not learnt from. The model is the 0.5B, its settings are those of `codezero verify` but for
`SETTINGS`.

A piece is `BLOCK` batches, each [answers judged, valid ones, those whose diagnosis is right, mean reward, mean reward
of cases that everybody passes, seconds].
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

from benchmarks import harness
from benchmarks.harness import ROOT, Arm, Counts, Result, Target
from benchmarks.power import of_shares
from benchmarks.splits import add_mbpp
from benchmarks.tables import markdown, share
from benchmarks.training import bounds
from codezero.reports import CasesReport

BENCHMARK = "cases"
BLOCK, BATCHES, RATE = 4, 64, 1e-4
START = 0.05
"""The share of valid answers before, for the power."""
SETTINGS: Mapping[str, Any] = {
    "model.name": "Qwen2.5-Coder-0.5B-Instruct",
    "verifier.batch_size": 4,
    "verifier.num_candidates": 4,
    "verifier.num_generations": 8,
    "rollout.max_new_tokens": 160,
    "probe.share": 0,
}
VALID = Target(figure="answers whose cases are all valid, of the last quarter", at_least=0.3)
PARTS = 4
"""Parts of a run that are compared."""


def block(settings: Sequence[str], folder: Path, name: str) -> Counts:
    """Has the writer learn from the batches of a piece such as `rounds 1-4`."""
    first, last = bounds(name)
    log = folder / "logs" / "cases.jsonl"
    if (left := last - len(_read(log))) > 0:
        paths = (f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs")
        command = [sys.executable, "-m", "codezero", "verify", "--batches", str(left), *settings, *paths]
        subprocess.run(command, cwd=ROOT, check=False)
    if len(reports := _read(log)) < last:
        raise SystemExit("codezero verify ended early, for the reason above; the same command goes on")
    return [_counts(one) for one in reports[first - 1 : last]]


def _read(log: Path) -> list[CasesReport]:
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []  # without a line that a kill has torn
    return [msgspec.json.decode(line, type=CasesReport) for line in lines]


def _counts(one: CasesReport) -> Counts:
    judged = one.num_answers - one.num_masked
    valid, right = (round((part or 0.0) * judged) for part in (one.valid, one.right))
    rewards = (round(part or 0.0, 4) for part in (one.reward_mean, one.reward_approving))
    return [judged, valid, right, *rewards, round(sum(one.seconds.values()), 1)]


def table(results: Mapping[str, Result]) -> str:
    """Returns, for each arm, what its batches came to by quarters."""
    rows = []
    for name, result in results.items():
        batches = [one for piece in result.counts.values() for one in piece]
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
    return markdown([*header, "minutes"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(BENCHMARK, __doc__)
    parser.add_argument("--batches", type=int, default=BATCHES, metavar="N", help=f"in all (default {BATCHES})")
    parser.add_argument("--rate", type=float, default=RATE, metavar="R", help=f"of learning (default {RATE:g})")
    add_mbpp(parser)
    options = parser.parse_args(arguments)
    num_problems = options.batches * SETTINGS["verifier.batch_size"]  # answers about one are not independent
    name, settings = f"rate-{options.rate:g}", {"verifier.learning_rate": options.rate, **SETTINGS}
    arm = Arm(
        benchmark=BENCHMARK,
        name=name,
        settings={"mbpp": harness.digest_of(options.mbpp), **settings},
        seed=0,
        pieces=[f"rounds {first + 1}-{first + BLOCK}" for first in range(0, options.batches, BLOCK)],
        power=[of_shares("answers whose cases are all valid", num_problems // PARTS, START, "problems")],
        targets=[VALID],
    )
    words = [f"{key}={value}" for key, value in settings.items()]
    words += ["tasks=mbpp", f"tasks.mbpp.path={options.mbpp.absolute()}", "tracking.view=off"]
    folder = (options.state / BENCHMARK / name).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    harness.run(arm, partial(block, words, folder), options)
    print(table(harness.results(BENCHMARK, options.results)))


if __name__ == "__main__":
    main()
