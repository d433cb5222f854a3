"""Output to the terminal: lines, and the progress of a long stage."""

from __future__ import annotations

import errno
import io
import json
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from codezero.errors import DISK_FULL

PLAIN_INTERVAL_S = 30.0
"""Seconds between two progress lines if the output is not a terminal."""
LIVE_INTERVAL_S = 0.2
"""Seconds between two updates of the progress line on a terminal."""
REMEMBERED = 500
"""Number of latest lines kept, for views that show them again."""
SHOWN_AFTER = 20
"""Most held-back lines that are printed on release."""


class Console:
    """Writer of lines and progress to one stream. On a terminal progress is one line that is redrawn, elsewhere an
    occasional line. What a full disk under the stream does not take, or a terminal or reader that is gone, is left
    out there: it must not end a node."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        if isinstance(self.stream, io.TextIOWrapper):
            self.stream.reconfigure(errors="backslashreplace")  # any text of peers, on any terminal
        self._live = self.stream.isatty()
        self._shown_at_s = time.monotonic()
        self._progress_width = 0
        self._lines: deque[tuple[float, str, bool]] = deque(maxlen=REMEMBERED)
        self._held: int | None = None
        self.on_line: Callable[[str], None] | None = None
        """Function that logs each line; None before there is a log."""

    def line(self, text: str) -> None:
        """Prints and logs one line, above any progress; its control characters are escaped."""
        self.show(text)
        if self.on_line is not None:
            self.on_line(text)

    def show(self, text: str, warns: bool = False) -> None:
        """Prints one line like `line`, without logging it."""
        shown = printable(text)
        self._lines.append((time.time(), shown, warns))
        if self._held is not None:
            self._held += 1
            return
        self._clear()
        self._write(f"{shown}\n")
        self._shown_at_s = time.monotonic()

    def lines(self) -> list[tuple[float, str, bool]]:
        """Returns the latest lines, each with the Unix time of its output, and whether it is a warning or an error."""
        return list(self._lines)

    def hold(self) -> None:
        """Holds all output back from now on, while a view uses the terminal."""
        self._clear()
        self._held = 0

    def release(self) -> None:
        """Prints the latest of the held-back lines, and resumes output."""
        held, self._held = self._held or 0, None
        latest = self.lines()[-min(held, SHOWN_AFTER) :] if held else []
        if held > len(latest):
            latest.insert(0, (0.0, f"({held - len(latest)} earlier lines were shown in the view)", False))
        with suppress(OSError):  # the terminal is gone; a signal handler that calls this has to continue
            self.stream.write("".join(f"{text}\n" for _, text, _ in latest))
            self.stream.flush()

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows the progress of a stage, at most once per interval, as a `ports.Progress`."""
        if self._held is not None:
            return
        interval = LIVE_INTERVAL_S if self._live else PLAIN_INTERVAL_S
        if time.monotonic() - self._shown_at_s < interval:
            return
        text = f"  {stage} {done}/{total}"
        if not self._live:
            self.show(text)
            return
        self._write("\r" + text.ljust(self._progress_width))
        self._progress_width, self._shown_at_s = len(text), time.monotonic()

    def _clear(self) -> None:
        if self._progress_width:
            self._write("\r" + " " * self._progress_width + "\r")
            self._progress_width = 0

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError as error:
            if error.errno not in (*DISK_FULL, errno.EIO, errno.EPIPE):
                raise


def printable(text: str) -> str:
    """Returns the text on one line: control and formatting characters are escaped, newlines included, so that text of
    peers, models or datasets cannot move the cursor, forge lines or change colours."""
    return "".join(ascii(c)[1:-1] if _moves(c) else c for c in text)


def _moves(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] == "C" or kind in ("Zl", "Zp")  # the last two separate lines and paragraphs


def json_line(value: Any) -> str:
    """Returns a JSON document on one line, in ASCII without control characters: text of peers cannot move the
    cursor."""
    return json.dumps(value).replace("\x7f", "\\u007f")
