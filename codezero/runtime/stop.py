"""Stopping by Ctrl-C, SIGTERM and a terminal that goes: each ends the current round; a timer ends a process that does
not react.

The files on disk are consistent at every moment, so only the current round is lost, whichever way it ends.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import Any

GRACE_S = 12.0
"""Seconds until a stop ends the process by force; the rest of the promised 15 s is for its exit."""
SAVE_S = 60.0
"""Seconds that a supervisor gives a node for its last checkpoint, some gigabytes on a slow disk, before it kills it."""
REPEAT_S = 2.0
"""Seconds in which a further signal is the same stop: a service manager signals a group, and then its leader too."""
_STOPPING = b"\nstopping: the running round is dropped, finished ones are saved (once more to stop at once)\n"


def on_stop(handle: Callable[[int, FrameType | None], object]) -> dict[int, Any]:
    """Has `handle` called at SIGINT, SIGTERM and SIGHUP, but for a SIGHUP that is ignored, as nohup does to outlive the
    terminal. Returns what handled each before."""
    taken = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        taken.append(signal.SIGHUP)
    return {number: signal.signal(number, handle) for number in taken}


@contextmanager
def stop_on_signals(
    leave: Callable[[], None] = lambda: None,
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Turns the first signal of `on_stop` into KeyboardInterrupt in the main thread. A SIGINT or SIGTERM `REPEAT_S` or
    more after it, or the end of the grace period, ends the process at once with exit code 0. The signal handler first
    calls `leave`, which releases the terminal.

    Yields a context manager that suspends both for work that must finish, such as a last checkpoint. If that fails, the
    end of the grace period has exit code 1."""
    asked_at_s: float | None = None  # monotonic
    is_unhurried = False
    timer = _exit_timer()

    def handle(signum: int, frame: FrameType | None) -> None:
        nonlocal asked_at_s
        if asked_at_s is not None:
            # bash sends its jobs a second SIGHUP when the terminal goes, which is nobody's impatience.
            if signum == signal.SIGHUP or time.monotonic() - asked_at_s < REPEAT_S:
                return
            os._exit(0)
        asked_at_s = time.monotonic()
        if not is_unhurried:
            timer.start()
        leave()
        # Not print(): the signal may have interrupted one.
        with suppress(OSError):  # whoever read it is gone
            os.write(2, _STOPPING)
        if not is_unhurried:
            raise KeyboardInterrupt

    @contextmanager
    def unhurried() -> Iterator[None]:
        nonlocal timer, is_unhurried
        is_unhurried = True
        timer.cancel()
        code = 1
        try:
            yield
            code = 0
        finally:
            timer, is_unhurried = _exit_timer(code), False
            if asked_at_s is not None:
                timer.start()

    previous = on_stop(handle)
    try:
        yield unhurried
    finally:
        if asked_at_s is None:  # else it ends a process whose exit waits for a thread, such as one of a name server
            timer.cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _exit_timer(code: int = 0) -> threading.Timer:
    timer = threading.Timer(GRACE_S, lambda: os._exit(code))
    timer.daemon = True
    return timer


def stop_with_parent() -> None:
    """Stops this process, as by SIGTERM, when its standard input ends.

    The parent keeps the other end of that pipe open and never writes, so its children end with it in any case.
    """

    def wait_for_end() -> None:  # of file descriptor 0
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_S + SAVE_S)
        os._exit(1)

    threading.Thread(target=wait_for_end, name="parent", daemon=True).start()
