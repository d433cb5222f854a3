"""The worker's side: it gives up its rights, then does one job after the other until its node is gone.

It has no secrets and cannot get any: all files but its pipes are closed, none can be opened, and where the kernel
permits namespaces there is no network. It is not a sandbox for running code: nothing here executes what it reads, and
the limits only bound the damage of a bug in codezero or a library.
"""

from __future__ import annotations

import fcntl
import gc
import math
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from codezero.runtime import kernel
from codezero.workers.job import LENGTH_BYTES, Job, JobCall, JobReply, framed

Jobs = Mapping[Job[Any, Any], Callable[[Any], Any]]
"""The function that does each job."""

_FILES = (0, 1, 2, 3, 4, 5)
"""The open descriptors: /dev/null three times, two pipes, and /proc/self/statm."""
_PAGE = resource.getpagesize()


def serve(jobs: Jobs, memory_bytes: int) -> None:
    """Does jobs until the pipe on standard input ends."""
    decoders = {job.name: msgspec.msgpack.Decoder(job.request) for job in jobs}
    functions = {job.name: function for job, function in jobs.items()}
    reads, writes, own_memory = _take_files()
    _give_up_rights(memory_bytes)
    gc.collect()
    gc.freeze()  # imported objects are not searched after every job
    _write(writes, (0).to_bytes(LENGTH_BYTES, "big"))
    calls = msgspec.msgpack.Decoder(JobCall)
    while (data := _read(reads)) is not None:
        call = calls.decode(data)
        _limit_processor(call.cpu_s)
        reply = _answer(functions[call.job], decoders[call.job], call.request)
        gc.collect()  # now, so that a crash as its objects are freed counts for the job that made them
        reply.rss_bytes = int(os.pread(own_memory, 200, 0).split()[1]) * _PAGE if own_memory else 0
        _write(writes, framed(reply))


def _answer(function: Callable[[Any], Any], decoder: msgspec.msgpack.Decoder[Any], request: Raw) -> JobReply:
    try:
        return JobReply(answer=Raw(msgspec.msgpack.encode(function(decoder.decode(request)))))
    except MemoryError:
        return JobReply(out_of_memory=True)
    except Exception as error:  # a bug that some text has found: only that text gets no answer
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} in {os.path.basename(where.filename)}, line {where.lineno}: {error}"
        return JobReply(error=text.encode("ascii", "replace").decode()[:400])


def _take_files() -> tuple[int, int, int]:
    """Closes all files but three, and returns them: pipes from and to the node, and /proc/self/statm or 0."""
    own_memory = os.open("/proc/self/statm", os.O_RDONLY) if kernel.IS_LINUX else 0
    high = [fcntl.fcntl(file, fcntl.F_DUPFD, len(_FILES)) for file in (0, 1, own_memory)]
    nothing = os.open(os.devnull, os.O_RDWR)
    for target, file in zip(_FILES, (nothing, nothing, nothing, *high), strict=True):
        os.dup2(file, target)
    # Where the limit is a thousand million, as in some containers, older kernels close number by number for a minute.
    last = max(map(int, os.listdir("/proc/self/fd"))) if kernel.IS_LINUX else os.sysconf("SC_OPEN_MAX")
    os.closerange(len(_FILES), last + 1)
    return 3, 4, 5 if kernel.IS_LINUX else 0


def _give_up_rights(memory_bytes: int) -> None:
    """Leaves network and capabilities, ends with the parent, and limits memory and files."""
    if kernel.IS_LINUX:
        for flags in (kernel.NEWUSER | kernel.NEWNET | kernel.NEWIPC, kernel.NEWNET | kernel.NEWIPC):
            with suppress(OSError):  # not permitted in many containers
                kernel.unshare(flags)
                break
        kernel.drop_capabilities()
        kernel.forbid_new_privileges()
        kernel.die_with_parent()
    for name, most in (("AS", memory_bytes), ("CORE", 0), ("FSIZE", 0), ("NOFILE", len(_FILES))):
        with suppress(ValueError, OSError):  # macOS takes no RLIMIT_AS
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _limit_processor(cpu_s: float) -> None:
    """Limits processor time to `cpu_s` seconds from now on; the kernel counts whole seconds."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(time.process_time() + cpu_s)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _read(file: int) -> bytes | None:
    """Reads the next frame; None if the node is gone."""
    length = _read_exactly(file, LENGTH_BYTES)
    return None if length is None else _read_exactly(file, int.from_bytes(length, "big"))


def _read_exactly(file: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        data = os.read(file, min(size, 1 << 20))
        if not data:
            return None
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
