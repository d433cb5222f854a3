"""The messages between the processes of a sandbox: lines of JSON over pipes."""

from __future__ import annotations

import fcntl
import json
import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

MAX_MESSAGE_BYTES = 32 << 20


class Gone(BaseException):
    """The other process has ended or sent no message. It is not an Exception, so that tests do not catch it."""


class Channel:
    """One end of a pair of pipes."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes, self._rest = reads, writes, b""

    def send(self, message: Any) -> None:
        """Sends a message. Raises Gone."""
        rest = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._writes, rest) :]
        except OSError as error:
            raise Gone("the pipe is closed") from error

    def receive(self) -> Any:
        """Waits for a message. Raises Gone."""
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            try:
                parts.append(os.read(self._reads, 1 << 16))
            except OSError as error:
                raise Gone("the pipe is closed") from error
            size += len(parts[-1])
            if not parts[-1]:
                raise Gone("the pipe is at its end")
            if size > MAX_MESSAGE_BYTES:
                raise Gone(f"a message is longer than {MAX_MESSAGE_BYTES >> 20} MiB")
        line, _, self._rest = b"".join(parts).partition(b"\n")
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Gone("a message is garbled") from error


def reporter(descriptor: int, token: str) -> Callable[[Mapping[str, Any]], None]:
    """Returns a function that reports to the supervisor, with the token that makes a line count."""

    def report(line: Mapping[str, Any]) -> None:
        os.write(descriptor, json.dumps({**line, "token": token}).encode() + b"\n")

    return report


class Reports:
    """The supervisor's end of the pipe on which a test runner reports."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest = descriptor, b""

    def receive_within(self, limit_s: float, token: str) -> dict[str, Any] | None:
        """Waits for the next report; None if none comes in time, {"gone": True} if none can come any more."""
        ends_at_s = time.monotonic() + limit_s
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                if (report := _parsed(line, token)) is not None:
                    return report
                continue
            left = ends_at_s - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                return None
            data = os.read(self._descriptor, 1 << 16)
            if not data or len(self._rest) > MAX_MESSAGE_BYTES:
                return {"gone": True}
            self._rest += data

    def close(self) -> None:
        os.close(self._descriptor)


def _parsed(line: bytes, token: str) -> dict[str, Any] | None:
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) and report.get("token") == token else None


def keep_open(kept: Mapping[int, int]) -> None:
    """Closes all descriptors but these, and moves each to the number that is its key; 0, 1 and 2 become /dev/null
    unless they are kept."""
    high = {number: fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for number, descriptor in kept.items()}
    nothing = fcntl.fcntl(0, fcntl.F_DUPFD, 64)
    for number in range(max({2, *kept}) + 1):
        if number in kept or number <= 2:
            os.dup2(high.get(number, nothing), number)
        else:
            os.closerange(number, number + 1)
    os.closerange(max({2, *kept}) + 1, os.sysconf("SC_OPEN_MAX"))


def read_whole(descriptor: int) -> bytes:
    """Reads a file from its beginning, whatever the offset that processes share."""
    parts: list[bytes] = []
    position = 0
    while data := os.pread(descriptor, 1 << 20, position):
        parts.append(data)
        position += len(data)
    return b"".join(parts)
