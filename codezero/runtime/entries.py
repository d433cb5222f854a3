"""Reader of log entries that `logs` writes: a line of text or JSON each, and the exception below it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from codezero.runtime.console import printable

_LOGGED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z (DEBUG|INFO|WARNING|ERROR|CRITICAL) \S+: (.*)")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A log entry; it has untrusted text, without control characters."""

    at_s: float
    """Unix time in seconds."""
    level: str
    text: str
    below: list[str] = field(default_factory=list)
    """The lines of its exception."""

    @property
    def warns(self) -> bool:
        return self.level in ("WARNING", "ERROR", "CRITICAL")

    @property
    def fails(self) -> bool:
        return self.level in ("ERROR", "CRITICAL") or bool(self.raised)

    @property
    def raised(self) -> str:
        """The last line of its traceback, with the exception; empty without one."""
        starts = [number for number, line in enumerate(self.below) if line.startswith("Traceback (most recent call")]
        return next((line for line in self.below[starts[-1] :] if _RAISED.match(line)), "") if starts else ""


class _Json(msgspec.Struct):
    """A line of a log in JSON (tracking.log_format)."""

    time: str
    level: str
    message: str
    exception: str = ""


def entries(text: str) -> list[LogEntry]:
    """Returns the entries of a log, the newest last, without lines before the first entry or of another format."""
    found: list[LogEntry] = []
    for line in text.split("\n"):
        if (entry := _entry(line)) is not None:
            found.append(entry)
        elif found and line and not line.startswith("{"):
            found[-1].below.append(line.removeprefix("  "))
    return found


def _entry(line: str) -> LogEntry | None:
    below: list[str] = []
    if line.startswith("{"):
        try:
            found = msgspec.json.decode(line, type=_Json)
        except (msgspec.DecodeError, RecursionError):
            return None
        line = f"{found.time} {found.level} json: " + printable(found.message)
        below = [printable(text) for text in found.exception.split("\n")] if found.exception else []
    entry = _LOGGED.fullmatch(line)
    if entry is None:
        return None
    try:
        at_s = datetime.fromisoformat(f"{entry[1]}+00:00").timestamp()
    except (ValueError, OverflowError):
        return None
    return LogEntry(at_s=at_s, level=entry[2], text=entry[3], below=below)
