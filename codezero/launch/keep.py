"""Keeps one node running in the foreground: it writes to the terminal, and continues after a crash.

The node has its own session, so that Ctrl-C reaches only the launcher, which passes it on once; and a pipe as standard
input that closes when the launcher ends, however it ends (`stop.stop_with_parent` waits for that).
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
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from codezero.errors import OUTAGE
from codezero.launch.supervisor import GRACE_S, MAX_CRASHES, MAX_PAUSE_S
from codezero.runtime.console import Console
from codezero.views.terminal.screen import in_foreground

TOLD = 1
"""The exit code of a program that has printed one line about what is wrong."""
_TICK_S = 0.2
_TAIL_BYTES = 1 << 20
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def keep_running(
    command: Callable[[int], Sequence[str]],
    reports: Path,
    console: Console,
    *,
    rounds: int = 0,
    environment: Mapping[str, str] | None = None,
    first_pause_s: float = 1.0,
    grace_s: float = GRACE_S,
) -> int:
    """Runs a node until it ends by itself or is stopped; returns the exit code.

    `command` returns the command line that plays a number of further rounds; 0 is no limit. `reports` is the file in
    which the node notes each finished round. A node that exits with `TOLD` before its first round would do so again,
    and is not restarted; any other end but a clean one is a crash. The wait before a restart doubles with each further
    crash without a finished round in between, and the fifth is the last, unless it was an outage.
    """
    crashes, left = 0, rounds
    with _Signals() as asked:
        while True:
            before = last_lines(reports)
            code = _run_once(command(left), environment, asked, grace_s)
            # New lines are not just those after the last one: the node removes lines of rounds that it plays again.
            finished = len(set(last_lines(reports)) - set(before))
            if code == 0 or asked.count:
                return 0
            if finished:
                crashes = 0
                left -= finished if rounds else 0
                if rounds and left <= 0:
                    return 0
            elif code == TOLD:
                console.line("not started again: this would not go away by itself")
                return TOLD
            crashes += 1
            if crashes >= MAX_CRASHES and code != OUTAGE:
                console.line(f"the node crashed: {_how(code)}; given up after {crashes} crashes with no finished round")
                return 1
            pause_s = min(first_pause_s * 2 ** min(crashes - 1, 20), MAX_PAUSE_S)
            what = "that may pass" if code == OUTAGE else f"the node crashed: {_how(code)}"
            console.line(f"{what}; it starts again in {pause_s:g} s where it was (Ctrl-C to stop)")
            if _slept_until_asked(pause_s, asked):
                return 0


def _how(code: int) -> str:
    return f"killed by signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"


class _Signals:
    """A context manager that counts the signals that ask to stop, instead of handling them as before."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> _Signals:
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup ignores it, to outlive the terminal
        taken = [number for number in _SIGNALS if not (number == signal.SIGHUP and ignored)]
        self._previous = {number: signal.signal(number, self._add) for number in taken}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _add(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


def _run_once(command: Sequence[str], environment: Mapping[str, str] | None, asked: _Signals, grace_s: float) -> int:
    """Runs the program to its end, passes each request to stop on, and returns its exit code. Nothing that it has
    started, such as a p2p daemon, outlives it."""
    if asked.count:
        return 0
    terminal = _terminal_settings()
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True) as process:
        passed, deadline = 0, float("inf")
        try:
            while process.poll() is None:
                if asked.count > passed:
                    deadline = min(deadline, time.monotonic() + grace_s)
                    passed += 1
                    process.terminate()
                if time.monotonic() > deadline:
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_TICK_S)
        finally:
            # EPERM is how macOS says that only zombies are left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        if terminal is not None and code < 0:
            _give_back(terminal)
        return code


def _terminal_settings() -> list[Any] | None:
    """Returns the settings of the terminal that the node writes to, or None if it writes to none."""
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


def _slept_until_asked(seconds: float, asked: _Signals) -> bool:
    deadline = time.monotonic() + seconds
    while not asked.count and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, _TICK_S))
    return asked.count > 0


def last_lines(path: Path) -> list[bytes]:
    """Returns the complete lines in the last MiB of the file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().split(b"\n")[:-1]
    except OSError:
        return []
