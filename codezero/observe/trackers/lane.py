"""Feeds trackers without ever waiting for one: each has a thread of its own behind a short queue."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol

from codezero.observe.trackers.metrics import Metric

logger = logging.getLogger(__name__)

MAX_WAITING = 64
"""Reports that a slow tracker may be behind; of more it misses the oldest."""
CLOSE_S = 4.0
"""For all trackers together to finish when the node stops, which has to be done within 15 s."""


class Tracker(Protocol):
    """What a lane drives, in its own thread. Every method may take its time and may raise anything."""

    name: str
    """Under which warnings speak of it: the setting that turns it on."""

    def open(self) -> None: ...

    def log(self, step: int, metrics: Sequence[Metric]) -> None: ...

    def close(self) -> None: ...


class Lanes:
    """All trackers of a node: a context that runs them while it is open. Nothing of them ever raises or waits here."""

    def __init__(self, trackers: Sequence[Tracker], close_s: float = CLOSE_S) -> None:
        self._lanes, self._close_s = [_Lane(tracker) for tracker in trackers], close_s

    def __enter__(self) -> Lanes:
        for lane in self._lanes:
            lane.start()
        return self

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        """Hands the numbers of a round to every tracker."""
        for lane in self._lanes:
            lane.put(step, metrics)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        deadline = time.monotonic() + self._close_s
        for lane in self._lanes:
            lane.ask_to_close()
        for lane in self._lanes:
            lane.join(deadline)


class _Lane:
    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._waiting: deque[tuple[int, Sequence[Metric]]] = deque()
        self._changed = threading.Condition()
        self._is_closing = self._is_dead = False
        self._warned: set[str] = set()
        # A daemon, so that one which hangs does not keep the node from ending.
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
        except Exception as error:  # a boundary: trackers are other people's programs, and training goes on
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
        """The oldest report that waits, when there is one; None when none will come any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            return self._waiting.popleft() if self._waiting else None

    def _warn(self, what: str, text: str) -> None:
        """Once for each kind of failure."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning("%s %s. Training is not affected, and logs/ has every number", self._tracker.name, text)


def _why(error: Exception) -> str:
    """In one line, with what to do where a package is missing."""
    if isinstance(error, ModuleNotFoundError):
        return f"the package {(error.name or '').partition('.')[0]} is not installed: pip install 'codezero[tracking]'"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def values_of(metrics: Sequence[Metric]) -> Mapping[str, float]:
    """By name."""
    return {metric.name: metric.value for metric in metrics}
