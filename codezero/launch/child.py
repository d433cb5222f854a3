"""A program that a supervisor keeps running: its current process, output, state and counts.

Every process has its own session, so that a terminal's Ctrl-C does not reach it, and a pipe as standard input that
closes when the supervisor ends, however it ends (`stop.stop_with_parent` waits for that).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from codezero.runtime import rotation

MAX_LINE_BYTES = 16 * 1024
_READ_BYTES = 64 * 1024
_ROUND = re.compile(r"round \d+ \|")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProgram:
    """A program for a supervisor to run."""

    name: str
    command: Callable[[int], Sequence[str]]
    """Returns the command line that plays a number of further rounds; 0 is no limit."""
    log: Path
    """The file with all output of the program; two files of a bounded size are kept."""
    rounds: int = 0
    """Finished rounds, over all restarts, after which it is done; 0 is no limit."""
    serves: bool = False
    """Whether the program runs for the sake of the others, so that it ends after them."""
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
        """Consecutive crashes without a finished round in between."""
        self.error = self.previous_error = ""
        """The last `error: ...` line of this process, and of the one before."""
        self.is_ready = False
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        """Output after the last newline."""

    @property
    def has_process(self) -> bool:
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended and has not been reaped yet."""
        return self._process is not None and self._process.poll() is not None

    @property
    def is_finished(self) -> bool:
        return 0 < self.program.rounds <= self.rounds

    @property
    def ran_s(self) -> float:
        return time.monotonic() - self.started_at_s

    def start(self, environment: Mapping[str, str] | None, kept_open: Sequence[int]) -> int:
        """Starts a process that inherits the file descriptors `kept_open`; returns the descriptor of its output. Raises
        OSError."""
        self.previous_error, self.error, self.is_ready = self.error, "", False
        self.started_at_s = time.monotonic()
        self.num_starts += 1
        self.program.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self.program.command(self.program.rounds and self.program.rounds - self.rounds),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**(os.environ if environment is None else environment), **self.program.environment},
            pass_fds=tuple(kept_open),
            start_new_session=True,
        )
        self.state = ChildState.RUNNING
        output = self._output()
        os.set_blocking(output, False)
        return output

    def read(self) -> list[str] | None:
        """Returns the lines printed since the last call, up to a limit; None at the end of the output."""
        try:
            raw = os.read(self._output(), _READ_BYTES)
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
        """Returns the exit code of a process that has ended, and its last lines. Kills whatever it left behind."""
        assert self._process is not None
        self.kill()
        last = self.read() or []
        if text := self._line(self._rest):
            last.append(text)
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process, self._rest = None, b""
        return code, last

    def summary(self) -> str:
        parts = [self.state.value, f"{self.rounds} round{'s' * (self.rounds != 1)}"]
        if self.program.serves:
            parts.pop()
        if self.num_starts > 1:
            parts.append(f"{self.num_starts - 1} restart{'s' * (self.num_starts != 2)}")
        if self.state is ChildState.FAILED:
            parts.append(f"see {self.program.log}")
        return ", ".join(parts)

    def _line(self, raw: bytes) -> str:
        """Returns a line as text, and notes a finished round, an error or readiness that it tells of."""
        text = raw[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip()
        if self.program.ready and text.startswith(self.program.ready):
            self.is_ready = True
        if text.startswith("error: "):
            self.error = text
        elif _ROUND.match(text):
            self.rounds += 1
            self.crashes = 0
            self.error = self.previous_error = ""
        return text

    def _output(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()
