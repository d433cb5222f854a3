"""The nodes of some folders for the pages: found again as they come and go, and kept in memory between requests."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

from codezero.errors import StateError
from codezero.observe.groups_file import SeenRound
from codezero.observe.probes import Learning
from codezero.observe.status import Status
from codezero.proposals import BatchReport
from codezero.types import RoundReport
from codezero.views.runs import SOLVER, Run, find_runs
from codezero.views.web.index import GroupsIndex, Head

T = TypeVar("T")
LOOK_AGAIN_S = 2.0
"""Seconds between two searches for nodes."""


class WatchedNode:
    """One run, with what was read of it. Safe to use from several threads."""

    def __init__(self, key: str, run: Run) -> None:
        self.key, self.role, self.folder, self.log_dir = key, run.role, run.folder, run.log_dir
        self._run, self._groups = run, GroupsIndex(run.log_dir)
        self._lock, self._making = threading.Lock(), threading.Lock()
        self._made: dict[str, tuple[Hashable, object]] = {}

    @property
    def solves(self) -> bool:
        return self.role == SOLVER

    def status(self) -> Status | None:
        return self._run.status()

    def pid(self) -> int | None:
        return self._run.pid()

    def reports(self) -> list[RoundReport]:
        """Returns a solver's finished rounds, ascending, each once."""
        with self._lock:
            found = self._run.reports()
        if all(one.round < after.round for one, after in itertools.pairwise(found)):
            return found
        return sorted({one.round: one for one in found}.values(), key=lambda one: one.round)

    def learning(self) -> Learning:
        with self._lock:
            return self._run.learning()

    def batches(self) -> list[BatchReport]:
        """Returns a proposer's finished batches, ascending, each once."""
        with self._lock:
            found = self._run.batches()
        return sorted({one.batch: one for one in found}.values(), key=lambda one: one.batch)

    def rounds_with_groups(self) -> dict[int, tuple[Head, ...]]:
        with self._lock:
            return self._groups.rounds()

    def groups(self, number: int) -> SeenRound | None:
        with self._lock:
            return self._groups.read(number)

    def made(self, name: str, version: Hashable, make: Callable[[], T]) -> T:
        """Returns the result of `make`, which is called only if `version` has changed since the last call."""
        with self._making:
            if name not in self._made or self._made[name][0] != version:
                self._made[name] = version, make()
            return self._made[name][1]  # type: ignore[return-value]


class WatchedFolders:
    """The nodes of some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self._lock = threading.Lock()
        self._nodes: dict[str, WatchedNode] = {}
        self._looked_at_s = float("-inf")

    def nodes(self) -> dict[str, WatchedNode]:
        """Returns the nodes by unique names."""
        with self._lock:
            if time.monotonic() - self._looked_at_s > LOOK_AGAIN_S:
                self._nodes = self._found(self._nodes)
                self._looked_at_s = time.monotonic()
            return self._nodes

    def node(self, key: str | None) -> WatchedNode | None:
        """Returns the node of this name, or the first one if `key` is None; None if there is no such node."""
        nodes = self.nodes()
        return nodes.get(key) if key is not None else next(iter(nodes.values()), None)

    def _found(self, before: dict[str, WatchedNode]) -> dict[str, WatchedNode]:
        known = {(node.role, node.folder, node.log_dir): node for node in before.values()}
        nodes: dict[str, WatchedNode] = {}
        for folder in self.folders:
            try:
                runs = find_runs(folder)
            except (StateError, OSError):
                continue
            for run in runs:
                key = run.name
                for other in (f"{run.name}-{run.role}", f"{run.name}-{run.role}-{len(nodes)}"):
                    key = other if key in nodes else key
                node = known.get((run.role, run.folder, run.log_dir))
                nodes[key] = node if node is not None and node.key == key else WatchedNode(key, run)
        return nodes
