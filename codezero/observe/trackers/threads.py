"""Threads that run trackers, one each with a short queue, so that the node never waits for a tracker."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from codezero.errors import Stopping, first_line
from codezero.observe.trackers.metrics import Metric
from codezero.runtime.worker import Worker

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
            thread.worker.start()
        return self

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        """Queues the numbers of a round for every tracker."""
        for thread in self._threads:
            thread.put(step, metrics)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        deadline = time.monotonic() + self._close_s
        for thread in self._threads:
            thread.worker.ask_to_stop()
        for thread in self._threads:
            thread.stop(deadline)


class _TrackerThread:
    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._waiting: deque[tuple[int, Sequence[Metric]]] = deque(maxlen=MAX_WAITING)
        self._is_open = False
        self._warned: set[str] = set()
        self.worker = Worker(f"tracker {tracker.name}", self._work)

    def put(self, step: int, metrics: Sequence[Metric]) -> None:
        if len(self._waiting) == MAX_WAITING and "open" not in self._warned:
            self._warn("behind", f"is {MAX_WAITING} reports behind, and misses the oldest of them")
        self._waiting.append((step, metrics))
        self.worker.wake()

    def stop(self, deadline: float) -> None:
        self.worker.stop(deadline - time.monotonic())
        if self.worker.is_alive:
            self._warn("close", "did not finish in time and is left behind; it may miss the last reports")

    def _work(self) -> None:
        """Opens the tracker, gives it what waits, and closes it at the end. Raises Stopping: it is closed, or cannot be
        opened."""
        # Boundaries: trackers are third-party code, and training continues.
        try:
            if not self._is_open:
                self._tracker.open()
                self._is_open = True
        except Exception as error:
            self._warn("open", f"is off until the next start: {_why(error)}")
            raise Stopping from error
        is_last = self.worker.is_stopping  # read before the work, so that the last has all that was there to do
        while self._waiting:
            try:
                self._tracker.log(*self._waiting.popleft())
            except Exception as error:
                self._warn("log", f"misses reports: {_why(error)}")
        if not is_last:
            return
        try:
            self._tracker.close()
        except Exception as error:
            self._warn("close", f"did not finish, and may miss the last reports: {_why(error)}")
        raise Stopping

    def _warn(self, what: str, text: str) -> None:
        """Logs a warning, once for each kind of failure."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning("%s %s. Training is not affected, and logs/ has every number", self._tracker.name, text)


def _why(error: Exception) -> str:
    """Returns the error in one line, with what to do if a package is missing."""
    return not_installed(error) if isinstance(error, ModuleNotFoundError) else first_line(error)


def not_installed(error: ModuleNotFoundError) -> str:
    """Returns what to do about a missing package, in one line."""
    package = (error.name or "").partition(".")[0]
    return f"the package {package} is not installed: install the extra tracking (docs/launch-script.md)"
