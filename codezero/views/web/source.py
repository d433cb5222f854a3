"""The nodes of some folders for the pages: found again as they come and go, and kept in memory between requests."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from codezero.errors import StateError
from codezero.views.runs import Run, find_runs

LOOK_AGAIN_S = 2.0
"""Seconds between two searches for nodes."""


class WatchedFolders:
    """The nodes of some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self._lock = threading.Lock()
        self._nodes: dict[str, Run] = {}
        self._looked_at_s = float("-inf")

    def nodes(self) -> dict[str, Run]:
        """Returns the nodes by unique names."""
        with self._lock:
            if time.monotonic() - self._looked_at_s > LOOK_AGAIN_S:
                self._nodes = self._found(self._nodes)
                self._looked_at_s = time.monotonic()
            return self._nodes

    def node(self, key: str | None) -> Run | None:
        """Returns the node of this name, or the first one if `key` is None; None if there is no such node."""
        nodes = self.nodes()
        return nodes.get(key) if key is not None else next(iter(nodes.values()), None)

    def _found(self, before: dict[str, Run]) -> dict[str, Run]:
        """Returns the nodes there now. Those in `before` keep their names, by which open pages ask for them."""
        known = {(node.role, node.folder): node for node in before.values()}
        taken = set(before)
        nodes: dict[str, Run] = {}
        for folder in self.folders:
            try:
                runs = find_runs(folder)
            except StateError:
                continue
            for run in runs:
                node = known.get((run.role, run.folder))
                if node is None:
                    longer = f"{run.name}-{run.role}"
                    names = itertools.chain((run.name, longer), (f"{longer}-{n}" for n in itertools.count(len(taken))))
                    run.key = next(name for name in names if name not in taken)
                    taken.add(run.key)
                    known[run.role, run.folder] = run
                elif node.log_dir == run.log_dir:
                    run = node
                else:  # it was started again with another folder of logs
                    run.key = node.key
                nodes[run.key] = run
        return nodes
