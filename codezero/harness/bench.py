"""Runs an evaluation: samples solutions or reads stored ones, executes them, and stores the results."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codezero.errors import StateError, TaskError
from codezero.harness.problems import BenchProblem, with_prelude
from codezero.harness.report import NO_CODE
from codezero.prompts import solver as prompt
from codezero.runtime.results import Results
from codezero.sandbox.run import Execution, Limits, run_many
from codezero.tasks.rows import BadRow, read_rows
from codezero.tasks.testcases import TestSuite, read_tests
from codezero.types import CaseOutcome, CaseResult, FinishReason, Rollout
from codezero.workers import Workers

if TYPE_CHECKING:
    from codezero.harness.best import Ranked
    from codezero.policy.solver import PolicySolver

MANY_CASES = 20
"""The least number of cases of a suite that stops at its first failure: contests have hundreds, and one decides."""
SUITE_S = 300.0
"""The limit for all cases of one solution, in wall seconds."""
STORED_AT_ONCE = 64

Row = dict[str, Any]
MakeSolver = Callable[[int], "PolicySolver"]
"""Returns the solver of a batch, by the number of its first problem, so that samples do not depend on stops."""
Step = Callable[[int], None]
"""Called with the number of problems, or solutions, finished since the last call."""
Written = Callable[[int, float], None]
"""Called with the number of tokens sampled for a batch and the wall seconds that this took."""
Rank = Callable[[Sequence[tuple[BenchProblem, Sequence[Rollout]]], int], "Sequence[Sequence[Ranked]]"]
"""Ranks the solutions to each problem of a batch, given the number of its first one."""


def require_unchanged(problems: Sequence[BenchProblem], dataset: str, results: Results) -> None:
    """Raises StateError: a problem is not the one that solutions in `results` are of, as after its file was edited."""
    now = {_group(dataset, problem): (problem.task.question, problem.task.tests) for problem in problems}
    for row in results.rows:
        then = row["question"], row["tests"]
        if now.get(row["group"], then) != then:
            raise StateError(
                f"{row['group']} has another question or other tests than the results so far: give another --out, or "
                "the same problems to continue"
            )


def solve_and_run(
    problems: Sequence[BenchProblem],
    dataset: str,
    results: Results,
    make_solver: MakeSolver,
    num_samples: int,
    batch_size: int,
    case_s: float,
    step: Step,
    written: Written,
    rank: Rank | None = None,
) -> None:
    """Solves the problems that `results` lacks, `batch_size` completions at a time, ranks the solutions to each if
    `rank` is given, and executes them all.

    A batch that a stop has interrupted is solved whole again: the random numbers of a solution depend on those beside
    it. A problem whose prompt does not fit the model counts as failed. Raises SandboxError or StateError.
    """
    tasks_a_batch = max(1, batch_size // num_samples)
    done = results.groups
    for start in range(0, len(problems), tasks_a_batch):
        batch = problems[start : start + tasks_a_batch]
        missing = [_group(dataset, problem) not in done for problem in batch]
        step(missing.count(False))
        if not any(missing):
            continue
        solver, began = make_solver(start), time.monotonic()
        groups = solver.solve([problem.task for problem in batch], 0)
        tokens = [rollout.tokens for group in groups for rollout in group.rollouts if rollout.tokens is not None]
        written(sum(len(one.completion_ids) for one in tokens), time.monotonic() - began)
        rollouts = {id(group.task): group.rollouts for group in groups}
        too_long = (Rollout(text="", finish=FinishReason.LENGTH),) * num_samples
        solved = [(problem, rollouts.get(id(problem.task), too_long)) for problem in batch]
        ranked = rank(solved, start) if rank else [()] * len(batch)
        for (problem, answers), found in compress(zip(solved, ranked, strict=True), missing):
            results.append(_run_group(problem, dataset, answers, case_s, found))
            step(1)


def _run_group(
    problem: BenchProblem, dataset: str, written: Sequence[Rollout], case_s: float, ranked: Sequence[Ranked]
) -> list[Row]:
    group = _group(dataset, problem)
    rows: list[Row] = [
        {
            "id": f"{group}/{number}",
            "group": group,
            "dataset": dataset,
            "source": problem.task.origin.value,
            "question": problem.task.question,
            "tests": problem.task.tests,
            **({"prelude": problem.prelude} if problem.prelude else {}),
            "solution": rollout.text,
            "finish": rollout.finish.value,
            **(asdict(ranked[number]) if ranked else {}),
        }
        for number, rollout in enumerate(written)
    ]
    executed = execute([(row["solution"], problem.prelude, problem.suite) for row in rows], case_s)
    return [{**row, **found} for row, found in zip(rows, executed, strict=True)]


_CHOSEN_BY = ("ranks", "written", "in_prompt")
"""The fields that `--best-of` adds to a line: those of `harness.best.Ranked`."""


def _group(dataset: str, problem: BenchProblem) -> str:
    return f"{dataset}/{problem.name}"


def execute(solutions: Sequence[tuple[str, str, TestSuite]], case_s: float) -> Iterator[Row]:
    """Executes each (answer, prelude, tests), several at a time; yields the outcomes in order. Raises SandboxError."""
    codes = [prompt.parse(answer) for answer, _, _ in solutions]
    limits = Limits(case_s=case_s, suite_s=SUITE_S, stop_at_failure_from=MANY_CASES)
    runs = run_many(
        [
            (with_prelude(prelude, code), suite)
            for code, (_, prelude, suite) in zip(codes, solutions, strict=True)
            if code
        ],
        limits,
    )
    for code, (_, _, suite) in zip(codes, solutions, strict=True):
        if code is None:
            no_code = CaseResult(outcome=CaseOutcome.FAIL, reason=NO_CODE)
            yield _outcome(Execution(cases=(no_code,) * suite.num_cases, seconds=0.0))
        else:
            yield _outcome(next(runs))


def _outcome(execution: Execution) -> Row:
    first = next((case.reason for case in execution.cases if case.outcome is not CaseOutcome.PASS), "")
    return {
        "passed": bool(execution.cases) and all(case.outcome is CaseOutcome.PASS for case in execution.cases),
        "cases": [case.outcome.value for case in execution.cases],
        "reason": first,
        "seconds": round(execution.seconds, 3),
    }


def read_stored(path: Path, workers: Workers) -> tuple[list[Row], Counter[str]]:
    """Returns the stored solutions that can be executed, and the counts of lines left out, by reason.

    A line has `tests` (a text, or a list of them) and `solution`; `question`, `id`, `group` and others are kept;
    those of `--best-of` are not, which rank all solutions to a problem.

    Raises TaskError: the file cannot be read, or no line of it is usable.
    """
    if path.suffix != ".jsonl":
        raise TaskError(f"{path} is not a .jsonl file: give JSON lines with tests and solution")
    rows: list[Row] = []
    left_out: Counter[str] = Counter()
    for number, line in enumerate(read_rows(path, ())):
        try:
            rows.append(_stored(line, number, workers))
        except BadRow as reason:
            left_out[str(reason)] += 1
    if not rows:
        why = ", ".join(f"{count} x {reason}" for reason, count in left_out.most_common(3)) or "it has no lines"
        raise TaskError(f"{path} has no solution to run ({why}): give JSON lines with tests and solution")
    return rows, left_out


def _stored(line: object, number: int, workers: Workers) -> Row:
    if isinstance(line, BadRow):
        raise line
    if not isinstance(line, Mapping):
        raise BadRow("line is not a JSON object")
    tests, answer, question = line.get("tests"), line.get("solution"), line.get("question", "")
    if isinstance(tests, list) and all(isinstance(test, str) for test in tests):
        tests = "\n".join(tests)
    if not all(isinstance(text, str) for text in (tests, answer, question, line.get("prelude", ""))):
        raise BadRow("tests, solution, question or prelude is missing or not text")
    suite = read_tests(workers, str(tests))
    if not suite.num_cases:
        raise BadRow("tests have no case that can be run")
    group = line.get("group")
    if not isinstance(group, str):
        group = hashlib.md5(f"{question}\n{tests}".encode(errors="replace"), usedforsecurity=False).hexdigest()
    return {
        **{key: value for key, value in line.items() if key not in _CHOSEN_BY},
        "id": str(line.get("id", number)),
        "group": group,
        "source": line.get("source", "code_contests" if suite.examples else "mbpp"),
        "question": question,
        "tests": tests,
        "finish": line.get("finish", FinishReason.STOP.value),
    }


def run_stored(rows: Sequence[Row], results: Results, workers: Workers, case_s: float, step: Step) -> None:
    """Executes the stored solutions that `results` lacks. Raises SandboxError or StateError."""
    done = len(results.rows)
    step(done)
    for start in range(done, len(rows), STORED_AT_ONCE):
        part = rows[start : start + STORED_AT_ONCE]
        solutions = [(row["solution"], row.get("prelude", ""), read_tests(workers, row["tests"])) for row in part]
        for row, found in zip(part, execute(solutions, case_s), strict=True):
            results.append([{**row, **found}])
            step(1)
