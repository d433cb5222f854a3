"""Checks from its folder that a node does its work, since a node has no port that could be asked, or attacked.

A finished round, or a batch in another role, counts as work; so does a start, so that a first round has as long as any
other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from codezero.errors import StateError
from codezero.runtime.state import holder
from codezero.views.runs import REPORTS, Run, find_runs

LAUNCHERS = ("swarm", "launcher")
"""The lock names of what starts nodes: `codezero swarm up`, and `--gpus`."""


def check(folders: Sequence[Path], within_s: float) -> list[str]:
    """Returns a line for each node that runs in one of the folders, also as one of a swarm or launcher.

    Raises StateError if none runs there, or one has finished nothing for `within_s` seconds.
    """
    lines = []
    for name, its, pid, runs in (found for folder in folders for found in _at_work(folder)):
        age_s = max(0.0, time.time() - _worked_at_s(its / f"{name}.lock", runs))
        if age_s > within_s:
            raise StateError(
                f"the {name} in {its} (process {pid}) has finished nothing for {age_s:.0f} s, more than "
                f"{within_s:.0f} s: see its log, or allow it more with --within"
            )
        lines.append(f"the {name} in {its} (process {pid}) went on {age_s:.0f} s ago")
    if not lines:
        raise StateError(f"no node runs in {' or '.join(map(str, folders))}: start it, or name its state folder")
    return lines


def _at_work(folder: Path) -> Iterator[tuple[str, Path, int, list[Run]]]:
    """Yields lock name, folder, process id and runs of each node that runs in the folder; those of a swarm or launcher
    while none of its nodes runs."""
    runs: list[Run] = []
    with suppress(StateError):  # no node has begun yet
        runs = find_runs(folder)
    nodes = [("node", run.folder, pid, [run]) for run in runs if (pid := run.pid()) is not None]
    yield from nodes or [(name, folder, pid, runs) for name in LAUNCHERS if (pid := holder(folder, name)) is not None]


def _worked_at_s(lock: Path, runs: Sequence[Run]) -> float:
    """Returns the Unix time of the last start or finished work, of the runs together."""
    found = [lock]
    for run in runs:
        found += [run.log_dir / REPORTS[run.role], *run.folder.glob("checkpoints/round-*")]
    times = []
    for path in found:
        with suppress(FileNotFoundError):  # it is not there yet, or was replaced by a newer one
            times.append(path.stat().st_mtime)
    return max(times)
