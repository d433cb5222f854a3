"""The view on a terminal while a node runs, or while somebody watches one: a thread that draws, and keys."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TextIO

from codezero.views.terminal.page import ViewOptions, lines, most_up
from codezero.views.terminal.screen import Screen, in_foreground
from codezero.views.terminal.snapshot import Snapshot

logger = logging.getLogger(__name__)

FRAME_S = 0.5
"""Seconds between two frames; keys are answered at once."""
_WHOLE_S = 15.0
"""Seconds after which a frame is written whole, over what other programs may have written to the terminal."""
_JUMP = {"up": 1, "down": -1}
_FAR = 1_000_000
_NOT_HERE = "cannot be suspended here"

Read = Callable[[], Sequence[Snapshot]]


def can_show(stream: TextIO) -> bool:
    """Returns whether the stream is a terminal on which the view can be drawn: one that can move the cursor, in UTF-8,
    with this process in its foreground."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return False
    utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return utf8 and in_foreground(stream.fileno())


def pressed(choice: ViewOptions, key: str, page: int, nodes: int, most: int) -> ViewOptions:
    """Returns the options after a key other than quit, suspend and redraw; the log scrolls back by at most `most`
    lines."""
    choice = replace(choice, notice=choice.notice.replace(_NOT_HERE, ""))
    if key == "log":
        return replace(choice, log=not choice.log, help=False, up=0)
    if key == "help":
        return replace(choice, help=not choice.help)
    step = {**_JUMP, "page up": page, "page down": -page, "home": _FAR, "end": -_FAR}.get(key, 0)
    if choice.log:
        return replace(choice, up=min(max(0, choice.up + step), most))
    return replace(choice, chosen=min(max(0, choice.chosen - step), nodes - 1))


class View:
    """A context manager that shows the snapshots that `read` returns. Whatever goes wrong with it, it leaves the
    terminal as it was, and the nodes that it shows continue."""

    def __init__(
        self,
        read: Read,
        quit_: Callable[[], None],
        *,
        quits: str,
        left: Callable[[], None] = lambda: None,
        stream: TextIO | None = None,
    ) -> None:
        """`quit_` is called, in a thread, when the user asks to quit, which the page calls `quits`; `left` is called
        once when the terminal is free again."""
        self._read, self._quit, self._on_left = read, quit_, left
        self._screen = Screen((stream or sys.stdout).fileno())
        self._choice = ViewOptions(quits=quits)
        self._left, self._leaving = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self._drawn_whole_at_s = 0.0

    def __enter__(self) -> View:
        with suppress(OSError):  # the terminal is gone, as the thread will find
            self._screen.enter()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()
        self._thread.join(timeout=FRAME_S + 1)
        if not self._thread.is_alive():
            self._screen.close()

    def leave(self) -> None:
        """Gives the terminal back; may be called by a signal handler."""
        self._left.set()
        self._screen.leave()
        if self._leaving.acquire(blocking=False):  # never released: only the first call tells
            self._on_left()

    def wait(self) -> None:
        """Waits until the view has been left."""
        self._left.wait()

    def _run(self) -> None:
        try:
            while not self._left.is_set():
                self._show(self._screen.keys(0.0 if not self._drawn_whole_at_s else FRAME_S))
        except OSError as error:  # the terminal is gone
            logger.info("the view ended: %s", error)
        except Exception:  # an error of the view must not cost the node its terminal
            logger.exception("the view ended; the node continues, and prints lines")
        finally:
            self.leave()

    def _show(self, keys: Sequence[str]) -> None:
        snapshots, size = self._read(), self._screen.size()
        for key in keys:
            if key == "quit":
                self._choice = replace(self._choice, notice="stopping: finished rounds are saved", help=False)
                self._quit()
            elif key == "suspend":
                self._suspend()
            elif key == "redraw":
                self._screen.redraw()
            else:
                shown = snapshots[min(self._choice.chosen, len(snapshots) - 1)]
                most = most_up(shown, size.columns, size.lines) if self._choice.log else 0
                self._choice = pressed(self._choice, key, max(size.lines - 2, 1), len(snapshots), most)
        now_s = time.monotonic()
        if now_s - self._drawn_whole_at_s > _WHOLE_S:
            self._screen.redraw()
            self._drawn_whole_at_s = now_s
        self._screen.draw(lines(snapshots, size.columns, size.lines, self._choice), size)

    def _suspend(self) -> None:
        """Gives the screen back and stops the whole job, as a terminal's Ctrl-Z does; shows the view again when the job
        comes to the foreground. A program without a shell that could continue it is not stopped."""
        if os.getsid(0) == os.getpid():
            self._choice = replace(self._choice, notice=_NOT_HERE)
            return
        self._screen.leave()
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        while not self._left.wait(FRAME_S) and not self._screen.in_front():
            pass
        if not self._left.is_set():
            self._screen.enter()
