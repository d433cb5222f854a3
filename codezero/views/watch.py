"""Snapshots of runs for the terminal view, made from their files, and the view of the node in this process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from codezero.config import TerminalView
from codezero.observe.roles import log_name
from codezero.observe.status import Status
from codezero.runtime.console import Console
from codezero.runtime.entries import LogEntry, entries
from codezero.views.accounts import Accounts, read_accounts
from codezero.views.runs import Run
from codezero.views.terminal.live import View, can_show
from codezero.views.terminal.snapshot import Message, Snapshot

LEDGER_S = 5.0
"""Seconds between two readings of the ledger."""
MOST_REPORTS = 400
"""The most rounds that a view remembers."""
_LOG_BYTES = 128 * 1024


class SnapshotSource:
    """A source of snapshots of one run."""

    def __init__(
        self, run: Run, status: Callable[[], Status | None], messages: Callable[[], Sequence[Message]]
    ) -> None:
        self._run, self._status, self._messages = run, status, messages
        self._accounts = Accounts()
        self._ledger_at_s = float("-inf")

    def snapshot(self, pid: int | None) -> Snapshot:
        if time.monotonic() - self._ledger_at_s > LEDGER_S and self._run.solves:
            self._accounts = read_accounts(self._run.folder)
            self._ledger_at_s = time.monotonic()
        return Snapshot(
            role=self._run.role,
            name=self._run.name if self._run.name != self._run.role else "",
            now_s=time.time(),
            pid=pid,
            status=self._status(),
            reports=self._run.reports(),
            learning=self._run.learning(),
            batches=self._run.batches(),
            cases=self._run.cases(),
            accounts=self._accounts,
            messages=self._messages(),
        )


def snapshots_of(run: Run) -> Callable[[], Snapshot]:
    """Returns a function that makes snapshots of a run of any process, from its files."""
    log = Log(run.log_dir / log_name(run.role))
    source = SnapshotSource(run, run.status, log.messages)
    return lambda: source.snapshot(run.pid())


class Log:
    """The latest entries of a log file that another process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._messages: list[Message] = []

    def messages(self) -> list[Message]:
        """Returns the latest messages, the newest last, each the first line of its entry; empty if there is no file."""
        try:
            found = self._path.stat()
            if (seen := (found.st_ino, found.st_size)) != self._seen:
                with self._path.open("rb") as file:
                    file.seek(max(0, found.st_size - _LOG_BYTES))
                    text = file.read(_LOG_BYTES).decode("utf-8", "replace")
                self._seen = seen
                self._messages = [_message(entry) for entry in entries(text)]
        except OSError:
            return []
        return self._messages


def _message(entry: LogEntry) -> Message:
    text = f"{entry.level}: {entry.text}" if entry.warns else entry.text
    return Message(at_s=entry.at_s, text=text, warns=entry.warns)


class NodeView:
    """The view of the node in this process, if its terminal can show one and nobody has turned it off."""

    def __init__(self, console: Console, setting: TerminalView) -> None:
        self._console, self._setting = console, setting
        self._view: View | None = None

    @contextmanager
    def showing(self, name: str, folder: Path, status: Callable[[], Status]) -> Iterator[None]:
        """Shows the node of this role and state folder; its lines are held back meanwhile and printed after."""
        if self._setting is TerminalView.off or not can_show(self._console.stream):
            yield
            return
        source = SnapshotSource(Run(name, name, folder, MOST_REPORTS), status, self._messages)
        self._view = View(
            lambda: [source.snapshot(os.getpid())],
            lambda: os.kill(os.getpid(), signal.SIGINT),
            quits="stop",
            left=self._console.release,
            stream=self._console.stream,
        )
        self._console.hold()
        with self._view:
            yield

    def leave(self) -> None:
        """Gives the terminal back; may be called by a signal handler."""
        if self._view is not None:
            self._view.leave()

    def _messages(self) -> list[Message]:
        return [Message(at_s=at_s, text=text, warns=warns) for at_s, text, warns in self._console.lines()]
