"""`swarm_launcher.log`: the lines that the launcher itself prints on the terminal, with times."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from codezero.runtime import rotation
from codezero.runtime.amounts import utc
from codezero.runtime.console import Console, printable

NAME = "swarm_launcher.log"
MAX_EARLY = 200
"""The number of lines that are kept until the log's folder is known."""


class LoggedConsole(Console):
    """A console that also writes its lines to a file. Typed text is not logged, so no secret is in it. A line that
    cannot be written is lost."""

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._early: list[str] = []
        self.on_line = self._log

    def log_to(self, folder: Path) -> None:
        """Starts the log in this folder, with the lines printed so far."""
        self._path = folder / NAME
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        for line in self._early:
            self._append(line)
        self._early.clear()

    def _log(self, text: str) -> None:
        line = f"{utc(time.time(), 'milliseconds')} {printable(text)}\n"
        if self._path is not None:
            self._append(line)
        elif len(self._early) < MAX_EARLY:
            self._early.append(line)

    def _append(self, line: str) -> None:
        assert self._path is not None
        rotation.rotate(self._path)
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(line)
