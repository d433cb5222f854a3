"""Divides the problems of MBPP, once and for all, so that nothing is tuned or trained on what is reported.

| split | task ids | |
|---|---|---|
| train | 601 to 974 | training; fitting the judge's calibration |
| tune | 511 to 600 | tuning and sweeps; fitting too |
| report | 11 to 260 | a figure that is reported, once a run; a node's defaults were chosen by one of these runs |

261 to 510 and HumanEval have not been used yet. `codezero eval` measures on what
its user names; of its samples the benchmarks take those of the split that they ask for, and refuse a file with others.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path

from benchmarks.harness import require
from codezero.harness import sources
from codezero.harness.problems import BenchProblem
from codezero.tasks import mbpp
from codezero.tasks.rows import read_rows
from codezero.types import Task
from codezero.workers import Workers

MBPP = Path("../shared/data/mbpp.jsonl")
"""Where benchmarks look for MBPP's problems if they are given no file."""


class Split(Enum):
    """The value names MBPP's own split, which the ids lie in."""

    train = "train"
    tune = "validation"
    report = "test"

    @property
    def ids(self) -> range:
        return {"train": range(601, 975), "tune": range(511, 601), "report": range(11, 261)}[self.name]


ALIKE = 0.8
FITTING = (Split.train, Split.tune)
"""What a judge's weights may be fitted on."""


def add_mbpp(parser: argparse.ArgumentParser) -> None:
    """Adds the option for MBPP's problems to a command line."""
    parser.add_argument("--mbpp", type=Path, default=MBPP, metavar="FILE", help=f"MBPP's problems (default: {MBPP})")


def problems(split: Split, path: Path) -> list[BenchProblem]:
    """The problems of a split, in the order of the file."""
    with Workers(1) as workers:
        found, _ = sources.load(sources.ProblemSource(dataset="mbpp", path=path, split=split.value), workers)
    return [problem for problem in found if int(problem.name) in split.ids]


def references(split: Split, path: Path) -> dict[str, tuple[Task, str]]:
    """The tasks of a split with MBPP's own solutions, by name. Ends the benchmark where the file is not there."""
    require(path)
    rows = [row for row in read_rows(path, (*mbpp.COLUMNS, "code")) if isinstance(row, Mapping)]
    solutions = {str(row.get("task_id")): str(row.get("code")).replace("\r\n", "\n") for row in rows}
    return {one.name: (one.task, solutions[one.name]) for one in problems(split, path)}


def alike(split: Split, path: Path) -> set[str]:
    """The problems of a split whose question is like one of those to train on: they share at least `ALIKE` of the words
    that either has (Jaccard's index). MBPP has many such pairs, and three of its questions in both splits."""
    require(path)
    rows = [row for row in read_rows(path, mbpp.COLUMNS) if isinstance(row, Mapping)]
    words = {int(row["task_id"]): set(re.findall(r"[a-z0-9]+", str(row["text"]).lower())) for row in rows}
    trained = [words[number] for number in Split.train.ids if number in words]

    def is_like(one: set[str]) -> bool:
        return any(len(one & other) >= ALIKE * len(one | other) for other in trained)

    return {str(number) for number in split.ids if number in words and is_like(words[number])}


def check(groups: Iterable[str], allowed: Sequence[Split]) -> None:
    """Ends the benchmark where a group of `codezero eval` (such as `mbpp/11`) is of a problem outside these splits."""
    for group in groups:
        dataset, _, name = group.partition("/")
        if dataset == "humaneval":
            raise SystemExit(f"{group}: HumanEval is never used here; give samples of MBPP ({_named(allowed)})")
        if dataset == "mbpp" and not any(name.isdigit() and int(name) in split.ids for split in allowed):
            raise SystemExit(
                f"{group} may not be used for this: give samples of MBPP {_named(allowed)}, such as those of codezero "
                f"eval --split {allowed[0].value} --limit {len(allowed[0].ids)}"
            )


def _named(splits: Iterable[Split]) -> str:
    return " or ".join(f"{split.ids[0]} to {split.ids[-1]}" for split in splits)
