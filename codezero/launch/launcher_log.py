"""`swarm_launcher.log`: what the launcher itself says on the terminal, with times, for the day after."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from codezero.runtime import rotation
from codezero.runtime.console import Console, printable
from codezero.runtime.logs import utc

NAME = "swarm_launcher.log"
MAX_EARLY = 200
"""Lines that are kept until it is known where to write."""


class LoggedConsole(Console):
    """A console whose lines also go into a file. What is typed is not a line, so no secret is in it. A disk that does
    not take a line costs the line."""

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._early: list[str] = []
        self.on_line = self._log

    def log_to(self, folder: Path) -> None:
        """From here on lines go into this folder, those that came before first."""
        self._path = folder / NAME
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        for line in self._early:
            self._write(line)
        self._early.clear()

    def _log(self, text: str) -> None:
        line = f"{utc()} {printable(text)}".replace("\n", "\\n") + "\n"
        if self._path is not None:
            self._write(line)
        elif len(self._early) < MAX_EARLY:
            self._early.append(line)

    def _write(self, line: str) -> None:
        assert self._path is not None
        rotation.rotate(self._path)
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(line)
