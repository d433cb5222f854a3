"""What the terminal shows: lines, and progress inside a long stage."""

from __future__ import annotations

import io
import sys
import time
import unicodedata
from collections.abc import Callable
from typing import TextIO

PLAIN_INTERVAL_S = 30.0
"""Between two progress lines where the output is no terminal."""
LIVE_INTERVAL_S = 0.2


class Console:
    """Writes to one stream; on a terminal progress is one line that is redrawn, elsewhere an occasional line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(errors="backslashreplace")  # whatever peers write, on whatever terminal
        self._live = self._stream.isatty()
        self._shown_at_s = time.monotonic()
        self._progress_width = 0
        self.on_line: Callable[[str], None] | None = None
        """What else gets each line, once there is a log."""

    def line(self, text: str) -> None:
        """Prints one line above any progress; control characters in it are shown as escapes. It is logged too."""
        self.show(text)
        if self.on_line is not None:
            self.on_line(text)

    def show(self, text: str) -> None:
        """The same without logging it."""
        self._clear()
        print(printable(text), file=self._stream, flush=True)
        self._shown_at_s = time.monotonic()

    def progress(self, stage: str, done: int, total: int) -> None:
        """ports.Progress: shows how far a stage is, now and then."""
        interval = LIVE_INTERVAL_S if self._live else PLAIN_INTERVAL_S
        if time.monotonic() - self._shown_at_s < interval:
            return
        text = f"  {stage} {done}/{total}"
        if not self._live:
            self.show(text)
            return
        self._stream.write("\r" + text.ljust(self._progress_width))
        self._stream.flush()
        self._progress_width, self._shown_at_s = len(text), time.monotonic()

    def _clear(self) -> None:
        if self._progress_width:
            self._stream.write("\r" + " " * self._progress_width + "\r")
            self._progress_width = 0


def printable(text: str) -> str:
    """The text with every control and formatting character but newline escaped, so that text from peers, models or
    datasets cannot move the cursor, forge lines or change colours."""
    return "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else ascii(c)[1:-1] for c in text)
