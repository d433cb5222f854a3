"""A pool of worker processes: a job goes to a free one, and ends with an answer or with the death of the worker."""

from __future__ import annotations

import logging
import queue
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec import Raw

from codezero.runtime import limits
from codezero.workers.job import Cause, Death, Job, JobCall, framed
from codezero.workers.process import WorkerProcess

logger = logging.getLogger(__name__)

PROGRAM = "codezero.jobs"
"""The module that has the table of a node's jobs. Only workers import it: a node's process parses no untrusted text."""
WORKER_BYTES = 350 << 20
"""The memory that is planned for a worker, in bytes. It takes 25 MiB at its start, 30 on references of MBPP (measured
by `benchmarks.workers`), and for a hostile solution 256 MiB more, which a dry run may allocate."""
MAX_WORKERS, MAX_BESIDE_GPU = 8, 64
BYTES_A_WORKER, BYTES_BESIDE_GPU = 6 << 30, 2 * WORKER_BYTES
"""The memory that a node must have for each worker if `evaluator.workers` is 0: a machine of 8 GB has one worker.
Beside a GPU, whose rollouts come a hundred times as fast, processors and memory have little else to do."""
WALL_FACTOR, WALL_MARGIN_S = 4.0, 10.0
"""A job may take this factor times its processor seconds, plus these seconds, of wall time: the machine may be busy."""

Q = TypeVar("Q")
A = TypeVar("A")


def num_workers(wanted: int, memory_bytes: int, *, on_gpu: bool, cores: int = 0) -> int:
    """Returns the number of workers: `wanted`, or for 0 as many as there are cores and memory for, up to MAX_WORKERS;
    up to MAX_BESIDE_GPU if the models run on a GPU. `cores` is the node's share of the cores, 0 for all of them."""
    bytes_each, most = (BYTES_BESIDE_GPU, MAX_BESIDE_GPU) if on_gpu else (BYTES_A_WORKER, MAX_WORKERS)
    return wanted or min(cores or limits.usable_cores(logical=True), max(1, memory_bytes // bytes_each), most)


class Workers:
    """A pool of `size` processes, each for one job at a time. Safe for threads; ends with `close` or the node."""

    def __init__(self, size: int, program: str = PROGRAM, modules: Sequence[str] = ()) -> None:
        """Starts the processes, which import `modules` too. Raises WorkerError: they do not start."""
        self._all = [WorkerProcess(program, modules) for _ in range(size)]
        self._idle: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        for one in self._all:
            self._idle.put(one)
        self._threads = ThreadPoolExecutor(size, "workers")
        self._told: set[str] = set()
        """The places of errors that a warning has named."""
        try:
            self._all[0].wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self._all]

    def submit(self, job: Job[Q, A], request: Q, cpu_s: float, *, fresh: bool = False) -> Future[A | Death]:
        """Returns a future of the answer or of the worker's death. A `fresh` worker has done no job before, so its
        death is due to this one. The future raises WorkerError: workers do not start any more."""
        return self._threads.submit(self._do, job, request, cpu_s, fresh)

    def ask(self, job: Job[Q, A], request: Q, cpu_s: float) -> A | Death:
        """Does a job, and again on a fresh worker if the first one died. Returns the last result."""
        answer = self.submit(job, request, cpu_s).result()
        return self.submit(job, request, cpu_s, fresh=True).result() if isinstance(answer, Death) else answer

    def close(self) -> None:
        """Ends all workers at once."""
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
            self._tell(job.name, reply.error)
            return Death(Cause.ERROR, reply.error)
        try:
            return job.answers.decode(reply.answer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            return Death(Cause.GARBLED, str(error)[:200])

    def _tell(self, job: str, error: str) -> None:
        """Warns of an error in a worker, of each place in the code once."""
        place = f"{job}: {error.partition(': ')[0]}"
        if place not in self._told:
            self._told.add(place)
            logger.warning(
                "a worker could not do its job %s: %s. That text gets no answer. Fix the module if it is yours; else "
                "nothing has to be done, and please report it. Said once for each place",
                job,
                ascii(error)[1:-1],
            )
