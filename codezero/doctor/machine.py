"""Checks of this machine's processor and memory, as far as a node may use them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import psutil

from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, info, warning
from codezero.runtime import state

GIB = 2**30
_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")
"""The instruction sets that make arithmetic on a CPU fast, by the kernel's names."""


def check_processor(case: Case) -> Iterator[Finding]:
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    name, features = _cpu_info(Path("/proc/cpuinfo"))
    yield info(
        "processor",
        f"{name or platform.machine()}, {cores} core{'s' * (cores != 1)}, {os.cpu_count()} threads"
        + (f" ({', '.join(features)})" if features else ""),
    )
    if platform.machine().lower() in ("x86_64", "amd64") and name and "avx2" not in features:
        yield warning(
            "processor",
            "it has no AVX2",
            "torch is several times slower on it, and some packages end with `illegal instruction`",
            "take another machine, or in a virtual one let the processor's features through (host-passthrough)",
        )
    yield from _threads(case, cores, cpu_quota(_CPU_MAX), os.getloadavg()[0])


def _threads(case: Case, cores: int, quota: float | None, load: float) -> Iterator[Finding]:
    wanted = case.config.model.threads
    usable = min(cores, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores)
    if quota is not None and quota < usable and (wanted or usable) > max(1, round(quota)):
        yield warning(
            "threads",
            f"this container may use {quota:g} of {cores} cores",
            "more threads than that slow each other down",
            f"set model.threads={max(1, round(quota))}",
        )
    elif wanted > usable:
        yield warning(
            "threads",
            f"model.threads={wanted} on {usable} cores",
            "threads that share a core slow each other down",
            "set model.threads=0, which takes one per core",
        )
    elif 0 < wanted < usable:
        yield info("threads", f"model.threads={wanted} of {usable} cores", "the other cores are not used")
    if load > 2 * cores:
        yield warning(
            "load",
            f"{load:.1f} programs want to run on {cores} cores",
            "rounds take that many times longer",
            "stop what else runs here (`top`), or give each node fewer threads (model.threads)",
        )


def check_memory(case: Case) -> Iterator[Finding]:
    """Reports free memory and swap. Whether it is enough for the node is told by the memory plan (`torch_build`)."""
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    line = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB free, swap {swap.free / GIB:.1f} GiB free"
    yield info("memory", line)
    if swap.used > 0.25 * memory.total:
        yield warning(
            "swap",
            f"{swap.used / GIB:.1f} GiB are swapped out",
            "a node whose memory lies on disk is many times slower, or killed",
            "stop other programs; train.method=lora needs less",
        )
    is_running = state.holder(case.state_dir) is not None  # a running node has that memory already
    if not is_running and case.config.train.memory_limit_gib * GIB > memory.available:
        yield warning(
            "memory",
            f"train.memory_limit_gib={case.config.train.memory_limit_gib:g}, and {memory.available / GIB:.1f} GiB free",
            "the plan counts on memory that is not there, and the system may kill the node",
            "lower it, or set it to 0 to plan with what is free",
        )


def cpu_quota(path: Path) -> float | None:
    """Returns the number of cores that a container may use (cgroup v2), or None without a limit."""
    try:
        most, period = path.read_text(encoding="ascii").split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _cpu_info(path: Path) -> tuple[str, list[str]]:
    """Returns the processor's name and which of `_FEATURES` it has; both empty where the system has no such file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "", []
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    return fields.get("model name", ""), [feature for feature in _FEATURES if feature in flags]
