"""The view on a terminal while a node runs, or while somebody watches one: a thread that draws, and what keys do."""

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

from codezero.views.terminal.page import ViewOptions, lines
from codezero.views.terminal.screen import Screen, in_foreground
from codezero.views.terminal.snapshot import Snapshot

logger = logging.getLogger(__name__)

FRAME_S = 0.5
"""Between two frames; keys are answered at once."""
_WHOLE_S = 15.0
"""After so long a frame is written whole, over what others may have written to the terminal."""
_JUMP = {"up": 1, "down": -1}
_FAR = 1_000_000

Read = Callable[[], Sequence[Snapshot]]


def can_show(stream: TextIO) -> bool:
    """Whether the stream is a terminal that the view can be drawn on: one that knows more than lines, in UTF-8, and
    whose user is looking."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return False
    utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return utf8 and in_foreground(stream.fileno())


def pressed(choice: ViewOptions, key: str, page: int, nodes: int) -> ViewOptions:
    """What is to be seen after a key other than quit, suspend and redraw."""
    if key == "log":
        return replace(choice, log=not choice.log, help=False, up=0)
    if key == "help":
        return replace(choice, help=not choice.help)
    step = {**_JUMP, "page up": page, "page down": -page, "home": _FAR, "end": -_FAR}.get(key, 0)
    if choice.log:
        return replace(choice, up=max(0, choice.up + step))
    return replace(choice, chosen=min(max(0, choice.chosen - step), nodes - 1))


class View:
    """A context manager that shows what `read` gives. Whatever goes wrong with it, it leaves the terminal as it was,
    and those who are shown go on."""

    def __init__(
        self,
        read: Read,
        quit_: Callable[[], None],
        *,
        quits: str,
        left: Callable[[], None] = lambda: None,
        stream: TextIO | None = None,
    ) -> None:
        """`quit_` is called, in a thread, when the user asks to quit, which the page words as `quits`; `left` once when
        the terminal is free again."""
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
        if self._leaving.acquire(blocking=False):  # and never released: the first to leave tells
            self._on_left()

    def wait(self) -> None:
        """Until the view has been left."""
        while not self._left.wait(3600):
            pass

    def _run(self) -> None:
        try:
            while not self._left.is_set():
                self._show(self._screen.keys(0.0 if not self._drawn_whole_at_s else FRAME_S))
        except OSError as error:  # the terminal is gone
            logger.info("the view ended: %s", error)
        except Exception:  # a mistake of the view's, which must not cost the node its terminal
            logger.exception("the view ended; the node goes on, and prints lines")
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
                self._choice = pressed(self._choice, key, max(size.lines - 2, 1), len(snapshots))
        now_s = time.monotonic()
        if now_s - self._drawn_whole_at_s > _WHOLE_S:
            self._screen.redraw()
            self._drawn_whole_at_s = now_s
        self._screen.draw(lines(snapshots, size.columns, size.lines, self._choice), size)

    def _suspend(self) -> None:
        """Stops the whole job, as a terminal's Ctrl-Z does, with the screen given back; goes on where it was when it
        comes to the foreground again. A program without a shell that could wake it is not stopped."""
        if os.getsid(0) == os.getpid():
            self._choice = replace(self._choice, notice="cannot be suspended here")
            return
        self._screen.leave()
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        while not self._left.wait(FRAME_S) and not self._screen.in_front():
            pass
        if not self._left.is_set():
            self._screen.enter()
