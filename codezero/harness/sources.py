"""Loads the problems of a dataset, from a file on this machine or streamed from the hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codezero.errors import TaskError
from codezero.harness.problems import BenchProblem
from codezero.harness.schemas import DATASETS, Dataset
from codezero.prompts.solver import showing_few
from codezero.tasks import hub, mbpp
from codezero.tasks.rows import BadRow, read_rows
from codezero.tasks.testcases import are_python, read_tests
from codezero.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSource:
    """A dataset, and the file or split that its problems come from."""

    dataset: str
    path: Path | None = None
    """A .jsonl or .parquet file; None takes the hub."""
    split: str | None = None
    """The split; None takes the dataset's own test split. A file of MBPP is split by task ids, other files are not."""
    show_all_tests: bool = True
    """True if MBPP's questions show all tests, as that benchmark is used; False if as few as a node's."""

    def named(self) -> str:
        """Returns a text that identifies the source, which stored results are bound to."""
        kind = DATASETS[self.dataset]
        place = str(self.path.absolute()) if self.path else f"{kind.hub_id} {kind.config or ''}".rstrip()
        return f"{place} split {self.split or kind.split}"


def load(source: ProblemSource, workers: Workers, limit: int = 0) -> tuple[list[BenchProblem], Counter[str]]:
    """Returns the first `limit` (0: all) usable problems, in the order of their rows, and the counts of rows left out,
    by reason.

    Raises TaskError: the file or the hub gives no rows, or none of them is usable.
    """
    dataset = DATASETS[source.dataset]
    rows = read_rows(source.path, dataset.columns) if source.path else _hub_rows(dataset, source.split or dataset.split)
    problems: list[BenchProblem] = []
    left_out: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for number, row in enumerate(rows):
        try:
            if isinstance(row, BadRow):
                raise row
            splits = (None, source.split or dataset.split)
            if source.path and source.dataset == "mbpp" and mbpp.split_of(row) not in splits:
                continue
            problem = with_tests(dataset.to_problem(row, number), workers)
            if not source.show_all_tests:
                question = showing_few(problem.task.question, problem.task.tests)
                problem = replace(problem, task=replace(problem.task, question=question))
            names[problem.name] += 1
            if names[problem.name] > 1:
                raise BadRow("row repeats an earlier id")
        except BadRow as reason:
            left_out[str(reason)] += 1
            continue
        problems.append(problem)
        if len(problems) == limit:
            break
    if not problems:
        why = ", ".join(f"{count} x {reason}" for reason, count in left_out.most_common(3)) or "no rows in this split"
        raise TaskError(f"{source.named()} has no usable row ({why}): give rows in the schema of {dataset.hub_id}")
    return problems, left_out


def with_tests(problem: BenchProblem, workers: Workers) -> BenchProblem:
    """Returns the problem with the tests that a worker process has read. Raises BadRow: they are not Python;
    WorkerError."""
    suite = problem.suite
    if not suite.num_cases:
        suite = read_tests(workers, problem.task.tests)
    elif not are_python(workers, (problem.prelude, suite.setup, *suite.statements)):
        raise BadRow("prompt or tests do not parse")
    if not suite.num_cases:
        raise BadRow("tests do not parse")
    return replace(problem, suite=suite)


def _hub_rows(dataset: Dataset, split: str) -> Iterator[object]:
    """Streams the rows of a split from the hub. Raises HubUnreachable."""
    try:
        hub.check_reachable()
    except hub.HubUnreachable as error:
        raise hub.HubUnreachable(f"{error}: try again later, or give the problems in a file, with --path") from error

    def open_rows() -> Any:
        from datasets import load_dataset

        return iter(load_dataset(dataset.hub_id, dataset.config, split=split, streaming=True))

    rows = hub.within(hub.OPEN_LIMIT_S, f"opening {dataset.hub_id}", open_rows)
    yield from hub.limited(rows, f"reading {dataset.hub_id}")
