"""Stopping when asked: Ctrl-C and SIGTERM end the running round, a node that is deep in arithmetic is ended by a timer.

What is on disk is whole at every moment, so nothing is lost but the running round, whichever way it ends.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType

GRACE_S = 12.0
"""A stop is answered within 15 s; this leaves some for the process to end."""
SAVE_S = 60.0
"""What those who stop a node, and then kill it, leave it for its last checkpoint: some gigabytes on a slow disk."""


_STOPPING = b"\nstopping: the running round is dropped, finished ones are saved (once more to stop at once)\n"


@contextmanager
def stop_on_signals(
    leave: Callable[[], None] = lambda: None,
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Turns the first SIGINT or SIGTERM into KeyboardInterrupt in the main thread; a second one, or a grace period
    that runs out, ends the process at once with exit code 0. `leave` gives the terminal back before anything is said
    or ended; it is called inside a signal handler.

    Gives a context in which the grace period does not run: for work that must not be cut off, such as a last save."""
    asked = threading.Event()
    timer = _exit_timer()

    def handle(signum: int, frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(0)
        asked.set()
        timer.start()
        leave()
        # Not print(): the signal may have come in the middle of one.
        os.write(2, _STOPPING)
        raise KeyboardInterrupt

    @contextmanager
    def unhurried() -> Iterator[None]:
        nonlocal timer
        timer.cancel()
        try:
            yield
        finally:
            timer = _exit_timer()
            if asked.is_set():
                timer.start()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield unhurried
    finally:
        timer.cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _exit_timer() -> threading.Timer:
    timer = threading.Timer(GRACE_S, lambda: os._exit(0))
    timer.daemon = True
    return timer


def stop_with_parent() -> None:
    """Has this process stop, as if asked by SIGTERM, when its standard input ends.

    A parent that keeps the other end of that pipe open, and never writes, is so outlived by no child, however it ends.
    """

    def wait_for_end() -> None:  # of file descriptor 0
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_S + SAVE_S)
        os._exit(1)

    threading.Thread(target=wait_for_end, name="parent", daemon=True).start()
