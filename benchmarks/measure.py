"""Measures wall time, processor time and peak memory of a piece of work, and names the machine."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
import torch

Result = TypeVar("Result")

SAMPLE_S = 0.01
"""How often memory is looked at where the kernel's own peak cannot be reset."""

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a piece of work."""

    wall_s: float
    cpu_s: float
    """Processor time of all threads and child processes, less disturbed than wall time by other programs."""
    other_cpu_s: float
    """What other programs took meanwhile; the measurement is sound while this is small."""
    peak_bytes: int
    """Largest resident set of the whole process meanwhile."""


def measure(work: Callable[[], Result]) -> tuple[Result, Cost]:
    """Runs `work` and says what it took."""
    peak = _KernelPeak() if _can_reset_peak() else _SampledPeak()
    wall, cpu, busy = time.perf_counter(), own_s(), busy_s()
    result = work()
    wall, cpu, busy = time.perf_counter() - wall, own_s() - cpu, busy_s() - busy
    return result, Cost(wall_s=wall, cpu_s=cpu, other_cpu_s=max(busy - cpu, 0.0), peak_bytes=peak.read())


def free_memory() -> None:
    """Gives memory of deleted objects back to the system, so that the next peak does not count it."""
    gc.collect()
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    cpu: str
    isa: str
    """The widest vector instructions that torch uses."""
    cores: int
    memory_gib: int
    torch: str
    threads: int
    accelerator: str = ""

    def __str__(self) -> str:
        """`AMD EPYC (AVX512), 2 cores, 23 GiB, torch 2.13.0, 2 threads`"""
        parts = (
            f"{self.cpu} ({self.isa})",
            self.accelerator,
            f"{self.cores} cores",
            f"{self.memory_gib} GiB",
            f"torch {self.torch}",
            f"{self.threads} threads",
        )
        return ", ".join(filter(None, parts))


def machine() -> Machine:
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = next(iter(models), name)
    return Machine(
        cpu=name,
        isa=torch.backends.cpu.get_cpu_capability(),
        cores=psutil.cpu_count(logical=False) or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30),
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
        accelerator=torch.cuda.get_device_name() if torch.cuda.is_available() else "",
    )


def own_s() -> float:
    """Processor time so far of this process and its children, those that have ended and been waited for included."""
    ended = os.times()
    own = time.process_time() + ended.children_user + ended.children_system
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            own += sum(child.cpu_times()[:4])  # user and system, its own and that of its ended children
    return own


def busy_s() -> float:
    """Processor time of the whole machine so far."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def _can_reset_peak() -> bool:
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


class _KernelPeak:
    """Linux counts the peak itself (VmHWM) and sets it back to the present size when asked (proc(5), clear_refs)."""

    def __init__(self) -> None:
        _CLEAR_REFS.write_text("5")

    def read(self) -> int:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024


class _SampledPeak:
    """Looks at the resident set every few milliseconds; may miss a short peak."""

    def __init__(self) -> None:
        self._process, self._stop = psutil.Process(), threading.Event()
        self._peak = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self._peak = max(self._peak, self._process.memory_info().rss)

    def read(self) -> int:
        self._stop.set()
        self._thread.join()
        return max(self._peak, self._process.memory_info().rss)
