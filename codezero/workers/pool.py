"""A pool of worker processes: jobs go to whichever is free, and are answered or found to have killed one."""

from __future__ import annotations

import logging
import os
import queue
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec import Raw

from codezero.workers.job import Cause, Death, Job, JobCall, framed
from codezero.workers.process import WorkerProcess

logger = logging.getLogger(__name__)

PROGRAM = "codezero.jobs"
"""The module whose table the workers of a node have. It is named, not imported: a node reads no stranger's text."""
WORKER_BYTES = 350 << 20
"""What a worker is planned to take: 25 MiB at its start, 30 over references of MBPP (`benchmarks.workers` has it), of a
hostile solution the 256 MiB that a dry run may allocate."""
MAX_WORKERS = 8
BYTES_A_WORKER = 6 << 30
"""Of memory that a node may use, for each worker that it takes by itself: a machine of 8 GB has one."""
WALL_FACTOR, WALL_MARGIN_S = 4.0, 10.0
"""Wall seconds that a job may take: so many times its processor seconds, for a machine that does other things too."""

Q = TypeVar("Q")
A = TypeVar("A")


def num_workers(wanted: int, memory_bytes: int) -> int:
    """What `evaluator.workers` comes to where so much memory can be used; 0 takes as many as there are cores for."""
    fitting = max(1, memory_bytes // BYTES_A_WORKER)
    return wanted or min(os.cpu_count() or 1, fitting, MAX_WORKERS)


class Workers:
    """As many worker processes as jobs are done at a time. Safe for threads; ends with `close`, or with the node."""

    def __init__(self, size: int, program: str = PROGRAM) -> None:
        """Raises WorkerError: they do not start."""
        self.size = size
        self._all = [WorkerProcess(program) for _ in range(size)]
        self._idle: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        for one in self._all:
            self._idle.put(one)
        self._threads = ThreadPoolExecutor(size, "workers")
        try:
            self._all[0].wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self._all]

    def submit(self, job: Job[Q, A], request: Q, cpu_s: float, *, fresh: bool = False) -> Future[A | Death]:
        """The answer to come, or how the job's worker died. A `fresh` worker has had no other job before, so that a
        death is this job's. The future raises WorkerError: workers do not start any more.
        """
        return self._threads.submit(self._do, job, request, cpu_s, fresh)

    def ask(self, job: Job[Q, A], request: Q, cpu_s: float) -> A | Death:
        """The answer; a job that brought its worker down is given to a fresh one before that is said of it."""
        answer = self.submit(job, request, cpu_s).result()
        return self.submit(job, request, cpu_s, fresh=True).result() if isinstance(answer, Death) else answer

    def close(self) -> None:
        """Ends all of them at once."""
        for one in self._all:
            one.close()
        self._threads.shutdown(cancel_futures=True)
        for one in self._all:
            one.end()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, job: Job[Q, A], request: Q, cpu_s: float, fresh: bool) -> A | Death:
        try:
            frame = framed(JobCall(job=job.name, cpu_s=cpu_s, request=Raw(msgspec.msgpack.encode(request))))
        except ValueError as error:
            return Death(Cause.ERROR, str(error))
        worker = self._idle.get()
        try:
            reply = worker.ask(frame, WALL_FACTOR * cpu_s + WALL_MARGIN_S, fresh)
        finally:
            self._idle.put(worker)
        if isinstance(reply, Death):
            return reply
        if reply.out_of_memory:
            return Death(Cause.MEMORY)
        if reply.error:
            logger.warning(
                "a worker could not do its job %s: %s. Nothing has to be done, it costs one text its answer; please "
                "report it",
                *(job.name, ascii(reply.error)[1:-1]),
            )
            return Death(Cause.ERROR, reply.error)
        try:
            return msgspec.msgpack.decode(reply.answer, type=job.answer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            return Death(Cause.GARBLED, str(error)[:200])
