"""Runs solutions against their tests, each in a sandbox of its own, several at a time."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import codezero
from codezero.errors import SandboxError
from codezero.runtime.limits import usable_cores
from codezero.tasks.testcases import TestSuite
from codezero.types import CaseOutcome, CaseResult

MARGIN_S = 10.0
"""Seconds beyond its own limit after which a sandbox is killed from outside."""
MAX_REASON_CHARS = 300
_MAX_RESULT_BYTES = 16 << 20
_MAX_COMPLAINT_BYTES = 1 << 16
UNCONFINED = "CODEZERO_UNCONFINED"
"""Environment variable. With 1, code runs with the user's rights where the machine permits no sandbox."""
_REFUSED = (
    "this machine permits no sandbox (namespaces of Linux, with mounts), so nothing is run: use Linux outside of a "
    "container, or a virtual machine of its own; Ubuntu 24 permits it after `sudo sysctl "
    f"kernel.apparmor_restrict_unprivileged_userns=0`. {UNCONFINED}=1 runs the code anyway, and it may then "
    "read, change and send whatever you may"
)
_UNCONFINED_LINE = f"NO SANDBOX ({UNCONFINED}=1): the code may read, change and send whatever this user may"
_START = (
    "import sys; sys.path.append(sys.argv[1]); from codezero.sandbox.inside.main import main; sys.path.pop(); "
    "main(sys.argv[2], *map(int, sys.argv[3:]))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one solution."""

    case_s: float = 5.0
    """Wall seconds for one test case, and for loading the solution."""
    suite_s: float = 30.0
    """Wall seconds for all cases together; cases that are not reached stay unknown."""
    memory_bytes: int = 512 << 20
    """Address space of each process."""
    file_bytes: int = 8 << 20
    """Bytes of the longest file."""
    files: int = 64
    """The most open files of a process."""
    processes: int = 8
    """Processes and threads besides the first; none if they cannot be distinguished from the user's other processes."""
    output_bytes: int = 4 << 20
    """The most bytes that a program may print; twice as many as are expected if that is more."""
    stop_at_failure_from: int = 0
    """The least number of cases of a suite that stops after its first failed one; 0 always runs all cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The results of one solution."""

    cases: tuple[CaseResult, ...]
    seconds: float
    """The wall time of its sandbox."""


def run_tests(code: str, suite: TestSuite, limits: Limits = Limits()) -> tuple[CaseResult, ...]:
    """Runs a solution and returns the result of every case of `suite`, in order. FAIL is the solution's fault, UNKNOWN
    is not. Raises SandboxError: the sandbox cannot be set up; nothing was run."""
    return _Runs().run(code, suite, limits).cases


def run_many(solutions: Iterable[tuple[str, TestSuite]], limits: Limits = Limits()) -> Iterator[Execution]:
    """Yields the results of many solutions, in their order; one per core runs at a time.

    Raises SandboxError. When the caller stops early, the sandboxes that still run are killed.
    """
    runs = _Runs()
    size = usable_cores(logical=True)
    with ThreadPoolExecutor(size) as executor:
        waiting: list[Future[Execution]] = []
        try:
            for code, suite in solutions:
                waiting.append(executor.submit(runs.run, code, suite, limits))
                if len(waiting) > 2 * size:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()
            runs.kill()


@functools.cache
def isolation() -> str:
    """Returns one line of text with the protections that this machine permits, by setting up a sandbox once.

    A confined sandbox has its own namespaces of processes, network, IPC and, unless it runs as root, users: no signals
    to other processes and no network. Keyrings and System V IPC are closed to it. Its file system has the system's
    libraries and Python, read-only, and one empty folder, which is deleted with it. If codezero runs as root, it is a
    user of its own. Limits on time, memory and files are always in force.

    Raises SandboxError: this machine permits no confined one, and `UNCONFINED` does not allow another.
    """
    found = _Runs().lines("", TestSuite(), Limits())[0]
    confined = ("own processes and no network (namespaces)", "own read-only file system")
    has = [
        *(confined if found["confined"] else [_UNCONFINED_LINE]),
        *(["own user"] if found["own_user"] else []),
        "limits on time, memory, files and processes",
    ]
    return ", ".join(has)


class _Runs:
    """A set of sandboxes that can be killed together."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._killed = False

    def run(self, code: str, suite: TestSuite, limits: Limits) -> Execution:
        started = time.monotonic()
        cases = _results(self.lines(code, suite, limits), suite.num_cases) if suite.num_cases else ()
        return Execution(cases=cases, seconds=time.monotonic() - started)

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            for process in self._processes:
                process.kill()

    def lines(self, code: str, suite: TestSuite, limits: Limits) -> list[dict[str, Any]]:
        """Runs a sandbox and returns the lines that it reports; the first has its protections. Raises SandboxError."""
        may_be_unconfined = os.environ.get(UNCONFINED) == "1"
        statements = {"setup": suite.setup, "statements": suite.statements}
        examples = [(case.given, case.expected) for case in suite.examples]
        job = {
            "code": code,
            "num_cases": suite.num_cases,
            "programs": bool(suite.examples),
            "limits": {**asdict(limits), "cpu_s": math.ceil(limits.suite_s) + 1},
            "may_be_unconfined": may_be_unconfined,
            "stop_at_failure": 0 < limits.stop_at_failure_from <= suite.num_cases,
        }
        box = None
        try:
            box = tempfile.mkdtemp(prefix="codezero-sandbox-")
            with _file_of(job) as job_file, _file_of(statements, *examples) as tests_file:
                output, complaint = self._converse(box, job_file, tests_file, limits.suite_s + MARGIN_S)
        except OSError as error:
            raise SandboxError(f"the sandbox cannot be started: {error}") from error
        finally:
            if box is not None:
                with suppress(RecursionError):
                    shutil.rmtree(box, ignore_errors=True)
        lines = _parsed(output)
        if not lines or "confined" not in lines[0]:
            reason = (complaint.strip().splitlines() or ["it said nothing"])[-1]
            raise SandboxError(f"the sandbox broke down before it ran anything: {reason}")
        if not (lines[0]["confined"] or may_be_unconfined):
            raise SandboxError(_REFUSED)
        return lines

    def _converse(self, box: str, job: IO[bytes], tests: IO[bytes], limit_s: float) -> tuple[bytes, str]:
        """Runs one sandbox to its end. Returns the output on the pipe of results, and on stderr."""
        reads, writes = os.pipe()
        with open(reads, "rb") as results:
            try:
                process = self._start(box, job, tests, writes)
            finally:
                os.close(writes)
            timer = threading.Timer(limit_s, process.kill)
            timer.start()
            try:
                assert process.stderr is not None
                output = results.read(_MAX_RESULT_BYTES)
                complaint = process.stderr.read(_MAX_COMPLAINT_BYTES).decode("utf-8", "replace")
            except BaseException:
                process.kill()
                raise
            finally:
                timer.cancel()
                self._end(process)
        return output, complaint

    def _start(self, box: str, job: IO[bytes], tests: IO[bytes], results: int) -> subprocess.Popen[bytes]:
        arguments = (Path(codezero.__file__).parent.parent, box, tests.fileno(), results, os.getpid())
        with self._lock:
            if self._killed:
                raise SandboxError("the sandbox was stopped")
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _START, *map(str, arguments)],
                stdin=job,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(tests.fileno(), results),
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
            self._processes.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._processes.discard(process)
        with suppress(subprocess.TimeoutExpired):  # it has sent its last line and is about to end
            process.wait(MARGIN_S)
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _file_of(*lines: object) -> IO[bytes]:
    """Returns a file without a name that has lines of JSON; unlike a pipe it takes any size."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
    file.flush()
    file.seek(0)
    return file


def _environment() -> dict[str, str]:
    """Returns the environment. Of the node's it has only LD_LIBRARY_PATH, which some builds of Python need to start."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **kept}


def _parsed(output: bytes) -> list[dict[str, Any]]:
    """Returns the reports up to the first unreadable one: a solution that shares the test runner's process can write
    some."""
    reports = []
    for line in output.splitlines():
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(report, dict):
            break
        reports.append(report)
    return reports


def _results(lines: list[dict[str, Any]], num_cases: int) -> tuple[CaseResult, ...]:
    results: list[CaseResult] = []
    missing = CaseResult(outcome=CaseOutcome.FAIL, reason="the sandbox ended without a result")
    for line in lines[1:]:
        if "again" in line:
            results.clear()
        elif "failed" in line:
            reason = line["failed"]
            outcome = CaseOutcome.UNKNOWN if line.get("unknown") else CaseOutcome.FAIL
            text = reason[:MAX_REASON_CHARS] if isinstance(reason, str) else "no reason given"
            results.append(
                CaseResult(outcome=CaseOutcome.PASS) if reason is None else CaseResult(outcome=outcome, reason=text)
            )
        elif line.get("out_of_time"):
            missing = CaseResult(outcome=CaseOutcome.UNKNOWN, reason="not run: the suite's time was up")
        elif line.get("stopped"):
            missing = CaseResult(outcome=CaseOutcome.UNKNOWN, reason="not run: an earlier case failed")
    return (*results, *[missing] * (num_cases - len(results)))[:num_cases]
