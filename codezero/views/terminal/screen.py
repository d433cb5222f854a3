"""The terminal itself: the alternate screen, frames of which only changed lines are written, and keys without Enter.

All output goes straight to the terminal's file descriptor, not through Python's streams, so that a signal handler may
leave the screen whatever was interrupted.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import select
import termios
import threading
from collections.abc import Sequence
from typing import Any

from rich.console import Console as RichConsole
from rich.text import Text

_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = b"\x1b[0m\x1b[?25h\x1b[?1049l"
_KEYS = {
    **{b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down", b"k": "up", b"j": "down"},
    **{b"\x1b[5~": "page up", b"\x1b[6~": "page down", b" ": "page down"},
    **{b"\x1b[H": "home", b"\x1b[F": "end", b"\x1b[1~": "home", b"\x1b[4~": "end", b"g": "home", b"G": "end"},
    **{b"q": "quit", b"Q": "quit", b"l": "log", b"L": "log", b"?": "help", b"h": "help"},
    **{b"\x0c": "redraw", b"\x1a": "suspend"},
}
_LEAVE_S = 1.0
"""The most seconds to wait for a frame that is being written when the screen is left: a terminal may accept no more."""


class Screen:
    """A terminal on which frames are shown while it is entered. One thread calls `enter` and `draw`, any thread
    `leave`, at any moment."""

    def __init__(self, output: int) -> None:
        """`output` is a terminal's file descriptor."""
        self._output = output
        self._input = _readable(output)
        self._lock = threading.RLock()
        self._shown: list[Text] = []
        self._size = os.terminal_size((0, 0))
        self._cooked: list[Any] | None = None
        self._entered = False
        self._ink = RichConsole(file=io.StringIO(), force_terminal=True, width=10_000, legacy_windows=False)

    def close(self) -> None:
        self.leave()
        if self._input is not None:
            os.close(self._input)
            self._input = None

    def enter(self) -> None:
        """Switches to the alternate screen. Raises OSError if the terminal is gone."""
        with self._lock:
            self._entered, self._shown = True, []
            with contextlib.suppress(termios.error):
                self._cooked = termios.tcgetattr(self._output)
                termios.tcsetattr(self._output, termios.TCSANOW, _without_echo(self._output, self._cooked))
            self._write(_ENTER)

    def leave(self) -> None:
        """Gives the terminal back as it was; a second call does nothing."""
        free = self._lock.acquire(timeout=_LEAVE_S)
        try:
            if not self._entered:
                return
            self._entered = False
            with contextlib.suppress(OSError):
                self._write(_LEAVE)
            if self._cooked is not None:
                with contextlib.suppress(termios.error):
                    termios.tcsetattr(self._output, termios.TCSANOW, self._cooked)
        finally:
            if free:
                self._lock.release()

    def size(self) -> os.terminal_size:
        """Returns columns and lines, at least one of each. Raises OSError if the terminal is gone."""
        found = os.get_terminal_size(self._output)
        return found if found.columns and found.lines else os.terminal_size((80, 24))

    def redraw(self) -> None:
        """Makes the next frame be written whole, as something else may have written to the terminal."""
        self._shown = []

    def draw(self, lines: Sequence[Text], size: os.terminal_size) -> None:
        """Shows each line of text on a line of the terminal. Raises OSError if the terminal is gone."""
        whole = not self._shown or size != self._size or len(lines) != len(self._shown)
        parts = ["\x1b[2J" if whole and self._shown else ""]
        for number, line in enumerate(lines):
            if whole or line != self._shown[number]:
                parts.append(f"\x1b[{number + 1};1H{self._ansi(line)}\x1b[0m\x1b[K")
        with self._lock:
            if self._entered and (frame := "".join(parts)):
                self._write(frame.encode("utf-8", "replace"))
                self._shown, self._size = list(lines), size

    def keys(self, wait_s: float) -> list[str]:
        """Returns the names of the keys pressed, as soon as there are any, at most `wait_s` seconds later. Raises
        OSError if the terminal is gone."""
        if self._input is None:
            select.select([], [], [], wait_s)
            return []
        if not select.select([self._input], [], [], wait_s)[0]:
            return []
        raw = os.read(self._input, 256)
        if not raw:
            raise OSError("end of input")
        return _named(raw)

    def in_front(self) -> bool:
        """Returns whether this job may draw on the terminal; it may if that is not a controlling terminal."""
        return in_foreground(self._output)

    def _ansi(self, line: Text) -> str:
        with self._ink.capture() as captured:
            self._ink.print(line, end="", soft_wrap=True, highlight=False)
        return captured.get()

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._output, data) :]


def in_foreground(terminal: int) -> bool:
    """Returns whether this process may use the terminal without being stopped for it."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True


def _readable(output: int) -> int | None:
    """Returns a descriptor of the same terminal to read keys from; None if that is not allowed."""
    try:
        if fcntl.fcntl(output, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
            return os.dup(output)
        return os.open(os.ttyname(output), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return None


def _without_echo(terminal: int, cooked: list[Any]) -> list[Any]:
    """Returns settings that pass keys on one by one, without echo. Ctrl-C still interrupts, Ctrl-S stops nothing, and
    Ctrl-Z comes as a key, since the screen has to be left first."""
    raw = [*cooked[:6], list(cooked[6])]
    raw[0] &= ~termios.IXON
    raw[3] &= ~(termios.ECHO | termios.ICANON)
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    raw[6][termios.VSUSP] = bytes([os.fpathconf(terminal, "PC_VDISABLE")])
    return raw


def _named(raw: bytes) -> list[str]:
    found = []
    while raw:
        name = next((key for key in sorted(_KEYS, key=len, reverse=True) if raw.startswith(key)), None)
        if name is not None:
            found.append(_KEYS[name])
        elif raw.startswith(b"\x1b"):
            break  # a sequence that means nothing here
        raw = raw[len(name or b"x") :]
    return found
