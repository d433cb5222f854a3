"""Work that must not delay a round, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from codezero.errors import Stopping


class Worker:
    """A thread that does its work at once, then whenever it is woken or the work is due, and once more when it is asked
    to stop. It is a daemon, so that work that hangs does not keep the process alive."""

    def __init__(self, name: str, work: Callable[[], float | None]) -> None:
        """`work` returns the seconds until it is due again, None to wait to be woken. It may raise Stopping, which ends
        the thread, and nothing else."""
        self._work = work
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._woken, self._stopping = threading.Event(), threading.Event()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_stopping(self) -> bool:
        """True from the request to stop on."""
        return self._stopping.is_set()

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Has the work done now, or, if it is under way, once more after that."""
        self._woken.set()

    def pause(self, seconds: float) -> None:
        """Waits in the middle of the work. Raises Stopping: the worker is asked to stop."""
        if self._stopping.wait(seconds):
            raise Stopping("the node stops")

    def ask_to_stop(self) -> None:
        self._stopping.set()
        self._woken.set()

    def stop(self, timeout_s: float) -> None:
        """Asks the thread to stop, and waits for its end."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(max(0.0, timeout_s))

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._woken.clear()
            is_last = self.is_stopping  # read before the work, so that the last has all that was there to do
            try:
                wait_s = self._work()
            except Stopping:
                return
            if not is_last:
                self._woken.wait(wait_s)
