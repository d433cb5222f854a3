"""What the terminal shows: lines, and progress inside a long stage."""

from __future__ import annotations

import io
import json
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

PLAIN_INTERVAL_S = 30.0
"""Between two progress lines where the output is no terminal."""
LIVE_INTERVAL_S = 0.2
REMEMBERED = 500
"""Lines, for those who show them again."""
SHOWN_AFTER = 20
"""Of the lines held back, how many are printed when they may be."""


class Console:
    """Writes to one stream; on a terminal progress is one line that is redrawn, elsewhere an occasional line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(errors="backslashreplace")  # whatever peers write, on whatever terminal
        self._live = self._stream.isatty()
        self._shown_at_s = time.monotonic()
        self._progress_width = 0
        self._lines: deque[tuple[float, str]] = deque(maxlen=REMEMBERED)
        self._held: int | None = None
        self.on_line: Callable[[str], None] | None = None
        """What else gets each line, once there is a log."""

    def line(self, text: str) -> None:
        """Prints one line above any progress; control characters in it are shown as escapes. It is logged too."""
        self.show(text)
        if self.on_line is not None:
            self.on_line(text)

    def show(self, text: str) -> None:
        """The same without logging it."""
        shown = printable(text)
        self._lines.append((time.time(), shown))
        if self._held is not None:
            self._held += 1
            return
        self._clear()
        print(shown, file=self._stream, flush=True)
        self._shown_at_s = time.monotonic()

    @property
    def stream(self) -> TextIO:
        """Where the lines go."""
        return self._stream

    def lines(self) -> list[tuple[float, str]]:
        """The latest lines, each with the Unix time at which it was said."""
        return list(self._lines)

    def hold(self) -> None:
        """Prints nothing from now on: something else has the terminal."""
        self._clear()
        self._stream.flush()
        self._held = 0

    def release(self) -> None:
        """Prints again, first the last of what was held back."""
        held, self._held = self._held or 0, None
        latest = self.lines()[-min(held, SHOWN_AFTER) :] if held else []
        if held > len(latest):
            latest.insert(0, (0.0, f"({held - len(latest)} earlier lines were shown in the view)"))
        with suppress(OSError):  # the terminal is gone; a signal handler that asks for this has more to do
            self._stream.write("".join(f"{text}\n" for _, text in latest))
            self._stream.flush()

    def progress(self, stage: str, done: int, total: int) -> None:
        """ports.Progress: shows how far a stage is, now and then."""
        if self._held is not None:
            return
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
    return "".join(ascii(c)[1:-1] if c != "\n" and _moves(c) else c for c in text)


def _moves(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] == "C" or kind in ("Zl", "Zp")  # the last two separate lines and paragraphs


def json_line(value: Any) -> str:
    """A JSON document on one line, in ASCII: whatever peers wrote, it moves no cursor."""
    return json.dumps(value).replace("\x7f", "\\u007f")
