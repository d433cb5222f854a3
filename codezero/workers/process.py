"""The node's side of one worker process: it is started, asked, and replaced when it dies or has done enough jobs."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

import codezero
from codezero.errors import WorkerError
from codezero.runtime import kernel
from codezero.workers.job import LENGTH_BYTES, MAX_FRAME_BYTES, REPLIES, Cause, Death, JobReply

MEMORY_BYTES = 1 << 30
"""Limit of a worker's address space. 256 MiB of it are the stack of the dry run, most of which is never used."""
MAX_JOBS = 500
"""The number of jobs after which a worker is replaced."""
MAX_IDLE_BYTES = 192 << 20
"""Resident memory after a job above which a worker is replaced; it starts with 25 MiB."""
START_S = 60.0
"""Longest wait in seconds for a worker to start."""
END_S = 2.0
"""Longest wait in seconds for a worker that has closed its pipe to end."""
WATCH_S = 0.2
"""Seconds between two checks of a worker's memory where the kernel does not limit it (macOS)."""
_START = (
    "import importlib, os, sys; root, program, memory, modules, *paths = sys.argv[1:]; "
    "sys.path[:1] = [] if root in sys.path[1:] else [root]; sys.path += paths; "
    "from codezero.workers.serve import serve; jobs = importlib.import_module(program).JOBS; "
    "pipe = os.dup(1); os.dup2(2, 1); [importlib.import_module(name) for name in modules.split()]; os.dup2(pipe, 1); "
    "serve(jobs, int(memory))"
)
"""The worker's program. What modules print while they are imported goes to standard error, not into the pipe."""
_OF_ITSELF = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP")
"""Signals that a process causes itself. SIGKILL is not one of them: the kernel sends it when memory is short."""


class WorkerProcess:
    """A new interpreter without the node's memory, files and environment. Only one thread at a time may ask it."""

    def __init__(self, program: str, modules: Sequence[str] = ()) -> None:
        """Starts it. `program` is a module with a table `JOBS`; its jobs may use `modules`, which are found where this
        process finds them. Raises WorkerError: no process can be started."""
        self._program, self._modules = program, modules
        self._lock = threading.Lock()
        """Held while the process is replaced, so that none is started after `close`."""
        self._closed = False
        self._is_ready, self._num_jobs, self._rss_bytes = False, 0, 0
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, frame: bytes, wall_s: float, fresh: bool) -> JobReply | Death:
        """Sends a framed `JobCall` and returns the reply, or the cause of the worker's death. With `fresh` the worker
        has done no job before. Raises WorkerError: it has ended, and no other one starts."""
        spent = self._rss_bytes > MAX_IDLE_BYTES or self._num_jobs >= MAX_JOBS or (fresh and self._num_jobs > 0)
        if spent or self._process.poll() is not None:
            self._replace()
        try:
            self.wait_until_ready()
        except WorkerError:  # the machine may have been short of memory just then
            self._replace()
            self.wait_until_ready()
        self._num_jobs += 1
        reply = self._converse(frame, time.monotonic() + wall_s)
        if isinstance(reply, bytes):
            try:
                read = REPLIES.decode(reply)
                self._rss_bytes = read.rss_bytes
                return read
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                reply = Death(Cause.GARBLED, str(error)[:200])
        self._replace()
        return reply

    def wait_until_ready(self) -> None:
        """Waits for the first frame. Raises WorkerError: it does not start; the message has its last line of stderr."""
        if self._is_ready:
            return
        hello = self._converse(b"", time.monotonic() + START_S)
        if hello != b"":
            self._complaints.seek(0)
            last = self._complaints.read(1 << 16).decode("utf-8", "replace").strip().splitlines()[-1:]
            reason = ascii(
                ", ".join(last) or (hello.detail if isinstance(hello, Death) else "it sent an unexpected message")
            )[1:-1]
            self.end()
            also = ", and that tasks.modules can be imported in the folder / and without environment variables"
            raise WorkerError(
                f"the worker process that reads other nodes' code does not start ({reason[:300]}): check that "
                f"{sys.executable} runs, and that the machine has memory and processes to spare (ulimit -v, -u)"
                f"{also if self._modules else ''}"
            )
        self._complaints.close()
        self._is_ready = True

    def end(self) -> None:
        """Kills the process and its session."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        self._complaints.close()

    def close(self) -> None:
        """Kills the process for good; a thread that waits for an answer gets a WorkerError."""
        with self._lock:
            self._closed = True
            with suppress(ProcessLookupError):
                self._process.kill()

    def _replace(self) -> None:
        self.end()
        self._start()

    def _start(self) -> None:
        root = str(Path(codezero.__file__).parent.parent)
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        paths = sys.path if self._modules else ()
        with self._lock:
            if self._closed:
                raise WorkerError("the workers were stopped")
            try:
                self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the worker is ready, or ends
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-s", "-B", "-c", _START, root, self._program, str(MEMORY_BYTES)),
                        *(" ".join(self._modules), *paths),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._complaints,
                    env={"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2", **kept},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkerError(
                    f"the worker process that reads other nodes' code cannot be started: {error}; check that the "
                    "machine has memory and processes to spare (ulimit -v, -u)"
                ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._writes, self._reads = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._writes, False)
        os.set_blocking(self._reads, False)
        self._is_ready, self._num_jobs, self._rss_bytes = False, 0, 0

    def _converse(self, frame: bytes, deadline_s: float) -> bytes | Death:
        """Writes a frame while it reads the next one, until the deadline at most."""
        rest, got = memoryview(frame), bytearray()
        poller = select.poll()
        poller.register(self._reads, select.POLLIN)
        if rest:
            poller.register(self._writes, select.POLLOUT)
        while (left_s := deadline_s - time.monotonic()) > 0:
            for file, _ in poller.poll(1000 * (left_s if kernel.IS_LINUX else min(left_s, WATCH_S))):
                if file == self._writes:
                    rest = self._write(rest)
                    if not rest:
                        poller.unregister(self._writes)
                    continue
                data = os.read(self._reads, 1 << 20)
                if not data:
                    return self._cause_of_death()
                got += data
                size = int.from_bytes(got[:LENGTH_BYTES], "big")
                if size > MAX_FRAME_BYTES or len(got) > LENGTH_BYTES + size:
                    return Death(Cause.GARBLED, "more than one message, or one that is too long")
                if len(got) == LENGTH_BYTES + size:
                    return bytes(got[LENGTH_BYTES:])
            if not kernel.IS_LINUX and self._is_over_limit():
                return Death(Cause.MEMORY)
        return Death(Cause.WALL_CLOCK)

    def _write(self, rest: memoryview) -> memoryview:
        """Writes what the pipe takes and returns the rest; nothing if the pipe is closed, which reading reports too."""
        try:
            return rest[os.write(self._writes, rest) :]
        except BlockingIOError:
            return rest
        except OSError:
            return rest[:0]

    def _is_over_limit(self) -> bool:
        """Returns True if the worker's resident memory is above the limit, which Linux checks by RLIMIT_AS."""
        try:
            return bool(psutil.Process(self.pid).memory_info().rss > MEMORY_BYTES)
        except psutil.Error:
            return False

    def _cause_of_death(self) -> Death:
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return Death(Cause.GARBLED, "it closed its pipe")
        if code >= 0:
            return Death(Cause.GARBLED, f"it ended with exit code {code}")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        if name == "SIGXCPU":
            return Death(Cause.PROCESSOR)
        return Death(Cause.SIGNAL if name in _OF_ITSELF else Cause.OUTSIDE, name)
