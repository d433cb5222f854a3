"""The nodes of some folders for the pages: found again as they come and go, and kept in memory between requests."""

from __future__ import annotations

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
        known = {(node.role, node.folder, node.log_dir): node for node in before.values()}
        nodes: dict[str, Run] = {}
        for folder in self.folders:
            try:
                runs = find_runs(folder)
            except (StateError, OSError):
                continue
            for run in runs:
                key = run.name
                for other in (f"{run.name}-{run.role}", f"{run.name}-{run.role}-{len(nodes)}"):
                    key = other if key in nodes else key
                node = known.get((run.role, run.folder, run.log_dir), run)
                nodes[key] = run if node.key != key else node
                nodes[key].key = key
        return nodes
