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
from codezero.views.runs import REPORTS, SOLVER, Run, find_runs

HOLDERS = (("node", ""), ("node", "proposer"), ("node", "verifier"), ("swarm", ""), ("launcher", ""))
"""The possible holders of a folder, as lock name and subfolder: a solver, a proposer, a test writer, a whole swarm by
`codezero swarm up`, and the nodes of `--gpus`."""


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
    for name, inner in HOLDERS:
        pid = holder(folder / inner, name)
        if pid is not None:
            runs = [Run("", inner or SOLVER, folder / inner)] if name == "node" else _runs_in(folder)
            nodes = [("node", run.folder, its, [run]) for run in runs if (its := run.pid()) is not None]
            yield from nodes or [(name, folder, pid, runs)]


def _runs_in(folder: Path) -> list[Run]:
    with suppress(StateError):
        return find_runs(folder)
    return []  # none of its nodes has begun yet


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
