"""The processes of one sandbox.

    codezero ─► gate ─► supervisor ─┬─► solution    runs the code; has of the tests the imports; cannot write results
                                    └─► test runner runs the tests, calls the solution over a pipe, decides

The gate enters namespaces and forks the supervisor, which is the first process of its namespace, so that all others
end with it. The supervisor has the code and, unread, the tests. It starts a new pair of processes for every program,
and for the remaining cases after one took too long or ended the solution's process.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from codezero.runtime import kernel
from codezero.sandbox.inside import confine, solution, test_runner
from codezero.sandbox.inside.channel import Channel, Gone, Reports, keep_open, read_whole, reporter
from codezero.sandbox.inside.session import Session

OWN_PROCESSES = 4
"""Gate, supervisor, test runner and solution, which count as processes of their user."""
GRACE_S = 5.0
"""Seconds for starting and ending, beside the time of the suite."""


def main(box: str, tests: int, results: int, parent: int) -> None:
    """Runs as the gate. The job is on stdin; `tests` and `results` are descriptors to read tests and to write lines."""
    if kernel.IS_LINUX:
        kernel.die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    job = json.load(sys.stdin)
    confine.first_to_be_killed()
    os.umask(0o022)
    user = confine.own_user()
    if user is not None:
        os.chown(box, user, user)
    in_namespaces = kernel.IS_LINUX and confine.enter_namespaces(user)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            is_closed = kernel.IS_LINUX and confine.close_kernel_stores()
            confined = in_namespaces and is_closed and confine.enter_own_root(box, user)
            _send(results, {"confined": confined, "own_user": user is not None})
            if confined or job["may_be_unconfined"]:
                if not confined:
                    os.chdir(box)
                confine.give_up_rights(user, in_namespaces)
                SolutionSupervisor(job, tests, results, in_namespaces, user is not None).run()
            status = 0
        except Exception as error:
            os.write(2, f"{error}\n".encode("utf-8", "replace"))
        finally:
            os._exit(status)
    _wait(child, job["limits"]["suite_s"] + GRACE_S)


def _wait(child: int, limit_s: float) -> None:
    ends_at_s = time.monotonic() + limit_s
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > ends_at_s:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(0.002)


class SolutionSupervisor:
    """The process that starts solution and test runner, and passes results on."""

    def __init__(self, job: Mapping[str, Any], tests: int, results: int, in_namespaces: bool, own_user: bool) -> None:
        self._code: str = job["code"]
        self._limits: Mapping[str, Any] = job["limits"]
        self._num_cases: int = job["num_cases"]
        self._programs: bool = job["programs"]
        self._stops_at_failure: bool = job["stop_at_failure"]
        self._tests, self._results = tests, results
        self._in_namespaces, self._own_user = in_namespaces, own_user
        self._ends_at_s = time.monotonic() + self._limits["suite_s"]
        self._token = secrets.token_hex(16)
        self._solution = self._test_runner = 0
        self._stopped = False

    def run(self) -> None:
        """Writes one result for each case, in order; a case that took too long or lost its process has failed."""
        done = 0
        together = False
        while done < self._num_cases and not self._stopped and time.monotonic() < self._ends_at_s:
            reports = self._start(done, together)
            done, together = self._watch(reports, done, together)
            self._end_processes()
            reports.close()
        self._send({"stopped": True} if self._stopped else {"out_of_time": done < self._num_cases})

    def _watch(self, reports: Reports, done: int, together: bool) -> tuple[int, bool]:
        """Passes the test runner's reports on. Returns how many cases are done, and True if tests and solution must
        share a process from now on (`test_runner.run_together`)."""
        while done < self._num_cases and not self._stopped:
            left = min(self._limits["case_s"], self._ends_at_s - time.monotonic())
            report = reports.receive_within(left, self._token)
            if report is None:
                whole = left == self._limits["case_s"]
                text = f"not done after {self._limits['case_s']:g} s" if whole else "the suite's time is up"
                self._send({"failed": text})
                return done + 1, together
            if report.get("together"):
                self._send({"again": True})
                return 0, True
            if "gone" in report:
                self._send({"failed": self._how_it_ended()})
                return done + 1, together
            if "loaded" in report:
                continue
            if "case" in report:
                self._send({"failed": report["failed"], "unknown": report["unknown"]})
                done += 1
            elif self._programs:
                self._send({"failed": self._program_failure(report)})
                return done + 1, together
            else:
                for _ in range(done, self._num_cases):
                    self._send({"failed": report["failed"], "unknown": report.get("unknown", False)})
                return self._num_cases, together
        return done, together

    def _program_failure(self, report: Mapping[str, Any]) -> str | None:
        """Returns why a program whose output was read has failed, also by its exit code; None if it has not."""
        if report["failed"] is not None:
            return str(report["failed"])
        status = self._status_within(self._limits["case_s"])
        if status == 0:
            return None
        return f"did not end after {self._limits['case_s']:g} s" if status is None else report["said"] or _ended(status)

    def _how_it_ended(self) -> str:
        status = self._status_within(1.0)
        return "the tests lost the solution's process" if status is None else _ended(status)

    def _status_within(self, limit_s: float) -> int | None:
        """Waits for the exit code of the solution's process, negative for a signal; None if it still runs."""
        ends_at_s = min(time.monotonic() + limit_s, self._ends_at_s)
        while True:
            ended, status = os.waitpid(self._solution, os.WNOHANG)
            if ended:
                self._solution = 0
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > ends_at_s:
                return None
            time.sleep(0.002)

    def _start(self, first: int, together: bool) -> Reports:
        """Starts a new pair of processes for the cases from `first` on."""
        to_solution, to_test_runner, errors = os.pipe(), os.pipe(), os.pipe()
        reports = os.pipe()
        stdin = _nameless_file() if self._programs else ()
        if not together:
            if stdin:
                mine = {0: stdin[0], 1: to_test_runner[1], 2: errors[1], 3: to_solution[0]}
                self._solution = self._fork(mine, lambda: solution.run_program(self._code, 3))
            else:
                ends = {3: to_solution[0], 4: to_test_runner[1]}
                self._solution = self._fork(ends, lambda: solution.serve(self._code, Channel(3, 4)))

        def decide() -> None:
            report = reporter(3, self._token)
            lines = read_whole(4).splitlines()
            try:
                if together:
                    test_runner.run_together(json.loads(lines[0]), first, self._code, report)
                elif self._programs:
                    test_runner.give(json.loads(lines[1 + first])[0], 8, 6)
                    limit = self._limits["output_bytes"]
                    test_runner.run_example(json.loads(lines[1 + first])[1], 5, 7, limit, report)
                else:
                    test_runner.run_statements(json.loads(lines[0]), first, Session(Channel(5, 6)), report)
            except Gone:
                report({"gone": True})

        kept = {3: reports[1], 4: self._tests, 5: to_test_runner[0], 6: to_solution[1], 7: errors[0]}
        if stdin:
            kept[8] = stdin[1]
        self._test_runner = self._fork(kept, decide, file_bytes=os.fstat(self._tests).st_size if stdin else 0)
        if together:
            self._solution = self._test_runner
        for end in (*to_solution, *to_test_runner, *errors, *stdin, reports[1]):
            os.close(end)
        return Reports(reports[0])

    def _fork(self, kept: Mapping[int, int], work: Callable[[], None], file_bytes: int = 0) -> int:
        """Forks a process with its own session and limits, in which only the descriptors `kept` are open, at the
        numbers that are the keys. It may write files of `file_bytes` if that is more than a solution may."""
        child = os.fork()
        if child != 0:
            return child
        try:
            os.setsid()
            if kernel.IS_LINUX:
                kernel.die_with_parent()
                kernel.forbid_tracing()
            keep_open(kept)
            limits = {**self._limits, "file_bytes": max(self._limits["file_bytes"], file_bytes)}
            processes = OWN_PROCESSES + limits["processes"] if self._in_namespaces or self._own_user else 0
            confine.set_limits(limits, processes)
            work()
        except BaseException as error:
            # Only a solution that has broken its own interpreter gets here; the test runner sees its process end.
            with suppress(OSError):
                os.write(2, f"{type(error).__name__}\n".encode())
        finally:
            os._exit(1)

    def _end_processes(self) -> None:
        """Kills the pair and all that it has started: in namespaces every process but this one."""
        if self._in_namespaces:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            with suppress(ChildProcessError):
                while True:
                    os.waitpid(-1, 0)
        for child in {self._solution, self._test_runner} - {0}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        self._solution = self._test_runner = 0
        for folder, folders, files in os.walk(".", topdown=False):
            for name in [*folders, *files]:
                path = os.path.join(folder, name)
                with suppress(OSError):  # an unreadable folder stays, but within the sandbox
                    os.rmdir(path) if name in folders and not os.path.islink(path) else os.remove(path)

    def _send(self, line: Mapping[str, Any]) -> None:
        self._stopped = self._stopped or (self._stops_at_failure and line.get("failed") is not None)
        _send(self._results, line)


def _nameless_file() -> tuple[int, int]:
    """Makes a file without a name, which nobody else can open. Returns descriptors to read and to write it."""
    name = "stdin"
    writes = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    try:
        return os.open(name, os.O_RDONLY), writes
    finally:
        os.unlink(name)


def _send(results: int, line: Mapping[str, Any]) -> None:
    os.write(results, json.dumps(line).encode() + b"\n")


def _ended(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with exit code {status}"
