"""Running a solution against its tests: one sandbox a solution, several at a time."""

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
from codezero.tasks.testcases import TestSuite
from codezero.types import CaseOutcome, CaseResult

MARGIN_S = 10.0
"""How much longer than its own limit a sandbox may take to end before it is killed from outside."""
MAX_REASON_CHARS = 300
_MAX_RESULT_BYTES = 16 << 20
_MAX_COMPLAINT_BYTES = 1 << 16
UNCONFINED = "CODEZERO_UNCONFINED"
"""Environment variable: with 1 code is run also where the machine permits no sandbox, with the rights of the user."""
_REFUSED = (
    "this machine permits no sandbox (namespaces of Linux, with mounts), so nothing is run: use Linux outside of a "
    "container, or a virtual machine of its own; Ubuntu 24 permits it after `sudo sysctl "
    f"kernel.apparmor_restrict_unprivileged_userns=0`. {UNCONFINED}=1 runs the code all the same, and it may then "
    "read, change and send whatever you may"
)
_UNCONFINED_LINE = f"NO SANDBOX ({UNCONFINED}=1): the code may read, change and send whatever this user may"
_START = (
    "import sys; sys.path.append(sys.argv[1]); from codezero.sandbox.inside.main import main; sys.path.pop(); "
    "main(sys.argv[2], *map(int, sys.argv[3:]))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one solution may use."""

    case_s: float = 5.0
    """Wall seconds for one test case, and for loading the solution."""
    suite_s: float = 30.0
    """Wall seconds for all cases together; those it does not reach stay unknown."""
    memory_bytes: int = 512 << 20
    """Address space of each process."""
    file_bytes: int = 8 << 20
    """Longest file."""
    files: int = 64
    """Open files of a process."""
    processes: int = 8
    """Processes and threads besides its first; none at all where they could not be told from the user's other ones."""
    output_bytes: int = 4 << 20
    """Most that a program may print."""
    stop_at_failure_from: int = 0
    """Suites of so many cases or more leave those after the first failed one unknown; 0 runs all cases of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """Which protections are really in force on this machine. Limits on time, memory and files always are."""

    confined: bool
    """Processes, network, IPC and, unless root, users of its own: signals reach nobody outside, and there is no
    network. Its file system shows the system's libraries and Python, read-only, and one empty folder that ends with
    it. False only where `UNCONFINED` asks for it."""
    own_user: bool
    """A user of its own, where codezero runs as root."""

    def line(self) -> str:
        """One line for people."""
        confined = ["own processes and no network (namespaces)", "own read-only file system"]
        has = [
            *(confined if self.confined else [_UNCONFINED_LINE]),
            *(["own user"] if self.own_user else []),
            "limits on time, memory, files and processes",
        ]
        return ", ".join(has)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What became of one solution."""

    cases: tuple[CaseResult, ...]
    seconds: float
    """Wall time of its sandbox."""


def run_tests(code: str, suite: TestSuite, limits: Limits = Limits()) -> tuple[CaseResult, ...]:
    """The outcome of every case of `suite`, in order. FAIL is the solution's fault, UNKNOWN is not.

    Raises SandboxError: the sandbox could not be set up; nothing was run.
    """
    return _Runs().run(code, suite, limits).cases


def run_many(
    solutions: Iterable[tuple[str, TestSuite]], limits: Limits = Limits(), workers: int = 0
) -> Iterator[Execution]:
    """The same for many solutions, in their order, `workers` (0: one a core) at a time.

    Raises SandboxError. When the caller stops early, what still runs is killed.
    """
    runs = _Runs()
    size = workers or os.cpu_count() or 1
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
def isolation() -> Isolation:
    """Sets up a sandbox, once, to see what this machine permits. Raises SandboxError: it permits none."""
    found = _Runs().lines("", TestSuite(), Limits())[0]
    return Isolation(confined=found["confined"], own_user=found["own_user"])


class _Runs:
    """Sandboxes that are killed together."""

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
        """What a sandbox reports, its protections first. Raises SandboxError."""
        may_be_unconfined = os.environ.get(UNCONFINED) == "1"
        statements = {"setup": suite.setup, "statements": [case.source for case in suite.statements]}
        examples = [(case.given, case.expected) for case in suite.examples]
        job = {
            "code": code,
            "num_cases": suite.num_cases,
            "programs": bool(suite.examples),
            "limits": {**asdict(limits), "cpu_s": math.ceil(limits.suite_s) + 1},
            "may_be_unconfined": may_be_unconfined,
            "stop_at_failure": 0 < limits.stop_at_failure_from <= suite.num_cases,
        }
        box = tempfile.mkdtemp(prefix="codezero-sandbox-")
        try:
            with _file_of(job) as job_file, _file_of(statements, *examples) as tests_file:
                output, complaint = self._converse(box, job_file, tests_file, limits.suite_s + MARGIN_S)
        except OSError as error:
            raise SandboxError(f"the sandbox cannot be started: {error}") from error
        finally:
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
        """Runs one sandbox to its end; returns what came over the pipe of results, and on stderr."""
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
    """Lines of JSON in a file that nobody can open: no size fills it up as it would a pipe."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
    file.flush()
    file.seek(0)
    return file


def _environment() -> dict[str, str]:
    """Nothing of ours but where shared libraries are, which some builds of Python need to start at all."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **kept}


def _parsed(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]


def _results(lines: list[dict[str, Any]], num_cases: int) -> tuple[CaseResult, ...]:
    results: list[CaseResult] = []
    missing = CaseResult(outcome=CaseOutcome.FAIL, reason="the sandbox ended without a result")
    for line in lines[1:]:
        if "again" in line:
            results.clear()
        elif "failed" in line:
            reason = line["failed"]
            outcome = CaseOutcome.UNKNOWN if line.get("unknown") else CaseOutcome.FAIL
            results.append(
                CaseResult(outcome=CaseOutcome.PASS)
                if reason is None
                else CaseResult(outcome=outcome, reason=str(reason)[:MAX_REASON_CHARS])
            )
        elif line.get("out_of_time"):
            missing = CaseResult(outcome=CaseOutcome.UNKNOWN, reason="not run: the suite's time was up")
        elif line.get("stopped"):
            missing = CaseResult(outcome=CaseOutcome.UNKNOWN, reason="not run: an earlier case failed")
    return (*results, *[missing] * (num_cases - len(results)))[:num_cases]
