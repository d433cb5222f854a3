"""A program that a supervisor keeps running: its current process, output, state and counts.

A program writes to pipes, from which its lines are shown and logged, or, where it is the only one, to the terminal.

Every process has its own session, so that a terminal's Ctrl-C does not reach it, and a pipe as standard input that
closes when the supervisor ends, however it ends (`stop.stop_with_parent` waits for that).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from codezero.runtime import rotation
from codezero.runtime.amounts import counted
from codezero.views.terminal.screen import in_foreground

HEALTHY_S = 60.0
"""A program that serves and ran this many seconds has made progress."""
MAX_LINE_BYTES = 16 * 1024
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProgram:
    """A program for a supervisor to run."""

    name: str
    command: Callable[[int], Sequence[str]]
    """Returns the command line that plays a number of further rounds; 0 is no limit."""
    log: Path | None = None
    """The file with all output of the program, of which two of a bounded size are kept; None for a program that writes
    to the terminal."""
    reports: Path | None = None
    """The file in which the program notes each finished round or batch, a line each."""
    rounds: int = 0
    """Finished rounds, over all restarts, after which it is done; 0 is no limit."""
    serves: bool = False
    """True if the program runs for the sake of the others, so that it ends after them."""
    ready: str = ""
    """The beginning of the line that the program prints when it can be used."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of this program, which override those that all programs share."""


class ChildState(Enum):
    WAITING = "waiting to start"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    KILLED = "killed, since it did not stop when asked"
    FAILED = "failed for good"

    @property
    def live(self) -> bool:
        return self in (ChildState.WAITING, ChildState.RUNNING)


class Child:
    """A supervised program, over the processes that run it one after another."""

    def __init__(self, program: ChildProgram) -> None:
        self.program = program
        self.state = ChildState.WAITING
        self.starts_at_s = self.started_at_s = 0.0
        self.num_starts = self.rounds = 0
        self.crashes = 0
        """Consecutive crashes without progress in between."""
        self.error = ""
        """The last `error: ...` line of this process."""
        self.is_ready = self.made_progress = False
        self._process: subprocess.Popen[bytes] | None = None
        self.has_played_all = False
        """True if the process that was reaped last has finished as many rounds as it was started for."""
        self._first: set[int] = set()
        """The hashes of the reports at the first start."""
        self._before: set[int] = set()
        """The hashes of the reports at the start of this process."""
        self._terminal: list[Any] | None = None
        """The settings of the terminal that the process writes to; None if it writes to none."""
        self._rest = b""
        """Output after the last newline."""

    @property
    def has_process(self) -> bool:
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """True if the process has ended and has not been reaped yet."""
        return self._process is not None and self._process.poll() is not None

    @property
    def is_finished(self) -> bool:
        return 0 < self.program.rounds <= self.rounds

    def start(self, environment: Mapping[str, str] | None, kept_open: Sequence[int]) -> int | None:
        """Starts a process that inherits the file descriptors `kept_open`; returns the descriptor of its output, None
        if that is the terminal. Raises OSError."""
        self.error, self.is_ready, self.made_progress = "", False, False
        self.started_at_s = time.monotonic()
        self.num_starts += 1
        self._before = reports_in(self.program.reports)
        if self.num_starts == 1:
            self._first = self._before
        if self.program.log is None:
            self._terminal = _terminal_settings()
        else:
            self.program.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self.program.command(self.program.rounds and self.program.rounds - self.rounds),
            stdin=subprocess.PIPE,
            stdout=None if self.program.log is None else subprocess.PIPE,
            stderr=None if self.program.log is None else subprocess.STDOUT,
            env={**(os.environ if environment is None else environment), **self.program.environment},
            pass_fds=tuple(kept_open),
            start_new_session=True,
        )
        self.state = ChildState.RUNNING
        if self._process.stdout is None:
            return None
        os.set_blocking(self._process.stdout.fileno(), False)
        return self._process.stdout.fileno()

    def read(self) -> list[str] | None:
        """Returns the lines printed since the last call, up to a limit; None at the end of the output."""
        assert self._process is not None
        if self._process.stdout is None or self.program.log is None:
            return None
        try:
            raw = os.read(self._process.stdout.fileno(), _READ_BYTES)
        except BlockingIOError:
            return []
        if not raw:
            return None
        rotation.rotate(self.program.log)
        with contextlib.suppress(OSError), self.program.log.open("ab") as log:  # a full disk must not end the swarm
            log.write(raw)
        *lines, self._rest = (self._rest + raw).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [text for line in lines if (text := self._line(line))]

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Ends the process and what it has started, such as a p2p daemon, at once."""
        if self._process is not None:
            # EPERM is how macOS says that only zombies are left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def reap(self) -> tuple[int, list[str]]:
        """Returns the exit code of a process that has ended, and its last lines. Counts the finished rounds of all
        processes so far, without those that a crash has undone, and kills whatever it left behind."""
        assert self._process is not None
        self.kill()
        last = self.read() or []
        if text := self._line(self._rest):
            last.append(text)
        code = self._process.wait()
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            pipe.close()
        self._process, self._rest = None, b""
        # New lines are not just those after the last one: the node removes lines of rounds that it plays again.
        reports = reports_in(self.program.reports)
        finished = len(reports - self._before)
        self.has_played_all = 0 < self.program.rounds <= self.rounds + finished
        self.rounds = len(reports - self._first)
        ran_long = self.program.serves and time.monotonic() - self.started_at_s >= HEALTHY_S
        self.made_progress = finished > 0 or ran_long
        if self._terminal is not None and code < 0:
            _give_back(self._terminal)
        return code, last

    def summary(self) -> str:
        parts = [self.state.value, counted(self.rounds, "round")]
        if self.program.serves:
            parts.pop()
        if self.num_starts > 1:
            parts.append(counted(self.num_starts - 1, "restart"))
        if self.state is ChildState.FAILED:
            parts.append(f"see {self.program.log}")
        return ", ".join(parts)

    def _line(self, raw: bytes) -> str:
        """Returns a line as text, and notes an error or readiness that it tells of."""
        text = raw[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip()
        if self.program.ready and text.startswith(self.program.ready):
            self.is_ready = True
        if text.startswith("error: "):
            self.error = text
        return text


def reports_in(path: Path | None) -> set[int]:
    """Returns the hashes of the complete lines of a file; none without a file."""
    try:
        with open(path or os.devnull, "rb") as file:
            return {hash(line) for line in file if line.endswith(b"\n")}
    except OSError:
        return set()


def _terminal_settings() -> list[Any] | None:
    """Returns the settings of the terminal that this process writes to, or None if it writes to none."""
    try:
        return termios.tcgetattr(sys.stdout.fileno())
    except (OSError, ValueError, termios.error):
        return None


def _give_back(settings: list[Any]) -> None:
    """Makes the terminal usable after a node that was killed while it had the whole screen."""
    output = sys.stdout.fileno()
    with contextlib.suppress(OSError, termios.error):
        if in_foreground(output):
            termios.tcsetattr(output, termios.TCSANOW, settings)
            os.write(output, b"\x1b[0m\x1b[?25h\x1b[?1047l")  # unlike 1049, 1047 moves no cursor without a full screen
