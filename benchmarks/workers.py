"""Measures what worker processes cost, and what several of them gain, over reference solutions of MBPP.

    python -m benchmarks.workers

First one attempt at a time: `read_attempts` called here against a job of one worker, the same attempt by both
in turn. Then groups of four attempts, all given to the workers at once: groups a second with 1, 2 and 4 of them, each
`--repeat` times in turn, the median shown. Last what a start costs, and the most memory that a worker has taken.

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

import psutil

from benchmarks.attacks.dressing import fenced
from benchmarks.harness import command_line
from benchmarks.measure import machine
from benchmarks.splits import Split, add_mbpp, references
from codezero.evaluate.jobs import READ_ATTEMPTS, Attempt, ReadRequest
from codezero.evaluate.read_attempts import read_attempts
from codezero.types import Task
from codezero.workers import Workers

GROUP = 4
SIZES = (1, 2, 4)


def requests(known: Sequence[tuple[Task, str]], group: int) -> list[ReadRequest]:
    """One for each problem: its reference solution, `group` times in other words, so that none is taken for another."""
    found = []
    for task, reference in known:
        codes = [f"{reference}\n# {number}" for number in range(group)]
        attempts = tuple(Attempt(fenced(code), code) for code in codes)
        found.append(
            ReadRequest(
                origin=task.origin,
                question=task.question,
                tests=task.tests,
                attempts=attempts,
                dry_run=True,
                fatal_rules=True,
                show=True,
            )
        )
    return found


def one_by_one(asked: Sequence[ReadRequest], workers: Workers) -> tuple[list[float], list[float]]:
    """Milliseconds of each in this process, and as a job; answers are compared."""
    here, there = [], []
    for request in asked:
        start = time.perf_counter()
        expected = read_attempts(request)
        middle = time.perf_counter()
        found = workers.submit(READ_ATTEMPTS, request, request.cpu_s).result()
        there.append(1000 * (time.perf_counter() - middle))
        here.append(1000 * (middle - start))
        if [one.rules for one in found.attempts] != [one.rules for one in expected.attempts]:
            raise SystemExit(f"a worker says something else: {found}")
    return here, there


def all_at_once(asked: Sequence[ReadRequest], workers: Workers) -> float:
    """Groups a second."""
    start = time.perf_counter()
    for answer in [workers.submit(READ_ATTEMPTS, request, request.cpu_s) for request in asked]:
        answer.result()
    return len(asked) / (time.perf_counter() - start)


def start_s() -> float:
    start = time.perf_counter()
    with Workers(1):
        return time.perf_counter() - start


def peak_mib(workers: Workers) -> int:
    """Returns the most memory that a worker has taken; 0 where the system does not tell."""
    status = [Path(f"/proc/{pid}/status") for pid in workers.pids]
    lines = [line for path in status if path.exists() for line in path.read_text().splitlines()]
    return max((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM")), default=0)


def interval(values: Sequence[float]) -> str:
    low, _, high = quantiles(values, n=4)
    return f"{median(values):7.2f} [{low:.2f}, {high:.2f}]"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("workers", __doc__)
    add_mbpp(parser)
    parser.add_argument("--limit", type=int, default=200, metavar="N", help="problems (default 200)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="measured times a number of workers")
    options = parser.parse_args(arguments)
    print(f"machine: {machine()}; load {os.getloadavg()[0]:.1f} at the start")
    known = list(references(Split.report, options.mbpp).values())[: options.limit]
    singles, groups = (requests(known, size) for size in (1, GROUP))
    with Workers(1) as workers:
        one_by_one(singles[:20], workers)
        here, there = one_by_one(singles, workers)
        print(f"{len(here)} attempts one at a time, ms: median [quartiles]")
        print(f"  in this process {interval(here)}\n  by a worker     {interval(there)}")
        print(f"  ratio           {interval([b / a for a, b in zip(here, there, strict=True)])}")
    pools = {size: Workers(size) for size in SIZES}
    try:
        for size, pool in pools.items():
            all_at_once(groups[: 4 * size], pool)
        rates = [[all_at_once(groups, pools[size]) for size in SIZES] for _ in range(options.repeat)]
        peak = max(peak_mib(pool) for pool in pools.values())
    finally:
        for pool in pools.values():
            pool.close()
    print(f"groups of {GROUP} a second, {len(groups)} at once, {psutil.cpu_count()} cores: median of {options.repeat}")
    for number, size in enumerate(SIZES):
        gains = [row[number] / row[0] for row in rates]
        print(f"  {size} workers {median(row[number] for row in rates):8.1f}, {median(gains):.2f} x one")
    print(f"a start takes {median(start_s() for _ in range(5)):.2f} s; the largest worker took {peak} MiB")


if __name__ == "__main__":
    main()
