"""Threads that run trackers, one each with a short queue, so that the node never waits for a tracker."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from codezero.observe.trackers.metrics import Metric

logger = logging.getLogger(__name__)

MAX_WAITING = 64
"""Most reports in a tracker's queue; when it is full, the oldest is dropped."""
CLOSE_S = 4.0
"""Seconds for all trackers together to finish when the node stops, which has to be done within 15 s."""


class Tracker(Protocol):
    """A tracker, which runs in a thread of its own. Every method may block, and may raise any exception."""

    name: str
    """Name in warnings: the setting that enables the tracker."""

    def open(self) -> None: ...

    def log(self, step: int, metrics: Sequence[Metric]) -> None: ...

    def close(self) -> None: ...


class TrackerThreads:
    """The threads of a node's trackers, a context manager that runs them. No method raises a tracker's errors, and only
    the exit waits, at most `close_s` seconds."""

    def __init__(self, trackers: Sequence[Tracker], close_s: float = CLOSE_S) -> None:
        self._threads, self._close_s = [_TrackerThread(tracker) for tracker in trackers], close_s

    def __enter__(self) -> TrackerThreads:
        for thread in self._threads:
            thread.start()
        return self

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        """Queues the numbers of a round for every tracker."""
        for thread in self._threads:
            thread.put(step, metrics)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        deadline = time.monotonic() + self._close_s
        for thread in self._threads:
            thread.ask_to_close()
        for thread in self._threads:
            thread.join(deadline)


class _TrackerThread:
    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._waiting: deque[tuple[int, Sequence[Metric]]] = deque()
        self._changed = threading.Condition()
        self._is_closing = self._is_dead = False
        self._warned: set[str] = set()
        # A daemon, so that a hanging tracker does not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=f"tracker {tracker.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, step: int, metrics: Sequence[Metric]) -> None:
        with self._changed:
            if self._is_dead:
                return
            is_behind = len(self._waiting) == MAX_WAITING
            if is_behind:
                self._waiting.popleft()
            self._waiting.append((step, metrics))
            self._changed.notify()
        if is_behind:
            self._warn("behind", f"is {MAX_WAITING} reports behind, and misses the oldest of them")

    def ask_to_close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify()

    def join(self, deadline: float) -> None:
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._warn("close", "did not finish in time and is left behind; it may miss the last reports")

    def _run(self) -> None:
        try:
            self._tracker.open()
        except Exception as error:  # a boundary: trackers are third-party code, and training continues
            self._is_dead = True
            self._waiting.clear()
            self._warn("open", f"is off until the next start: {_why(error)}")
            return
        while (report := self._next()) is not None:
            try:
                self._tracker.log(*report)
            except Exception as error:  # likewise
                self._warn("log", f"misses reports: {_why(error)}")
        try:
            self._tracker.close()
        except Exception as error:  # likewise
            self._warn("close", f"did not finish, and may miss the last reports: {_why(error)}")

    def _next(self) -> tuple[int, Sequence[Metric]] | None:
        """Waits for a report and returns the oldest; None when the queue is empty and closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            return self._waiting.popleft() if self._waiting else None

    def _warn(self, what: str, text: str) -> None:
        """Logs a warning, once for each kind of failure."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning("%s %s. Training is not affected, and logs/ has every number", self._tracker.name, text)


def _why(error: Exception) -> str:
    """Returns the error in one line, with what to do if a package is missing."""
    if isinstance(error, ModuleNotFoundError):
        return f"the package {(error.name or '').partition('.')[0]} is not installed: pip install 'codezero[tracking]'"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
