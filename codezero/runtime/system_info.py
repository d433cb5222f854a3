"""`system_info.txt`: the node's hardware and software for bug reports, without users, paths or addresses."""

from __future__ import annotations

import importlib.util
import logging
import os
import platform
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil

from codezero import __version__
from codezero.runtime.amounts import GIB, utc

logger = logging.getLogger(__name__)

NAME = "system_info.txt"
PACKAGES = ("torch", "transformers", "peft", "datasets", "huggingface-hub", "hivemind", "protobuf", "numpy")


def is_installed(package: str) -> bool:
    """Returns whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def write(log_dir: Path) -> None:
    """Replaces the file with the facts of this start; a failed write is logged as a warning."""
    text = "".join(f"{name}: {value}\n" for name, value in facts())
    try:
        (log_dir / NAME).write_text(text, encoding="utf-8")
    except OSError as error:
        logger.warning(
            "cannot write %s/%s (%s): free space; the node continues without it", log_dir, NAME, error.strerror
        )


def facts() -> Iterator[tuple[str, str]]:
    """Yields the names and values of the lines."""
    yield "time", utc(time.time())
    yield "codezero", __version__
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}, {_distribution()}"
    yield "container", "yes" if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() else "no"
    cores = f"{psutil.cpu_count(logical=False) or '?'} cores, {os.cpu_count() or '?'} threads"
    yield "cpu", f"{_cpu_model()}, {cores}"
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    yield "memory", f"{memory.total / GIB:.1f} GiB, {memory.available / GIB:.1f} available; swap {swap.total / GIB:.1f}"
    yield from _torch()
    for package in PACKAGES:
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            yield package, "not installed"


def _torch() -> Iterator[tuple[str, str]]:
    import torch

    yield "torch for", f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    yield "cpu instructions", torch.backends.cpu.get_cpu_capability()
    if not torch.cuda.is_available():
        yield "gpu", "Apple (MPS)" if torch.backends.mps.is_available() else "none that torch can use"
        return
    yield "torch has kernels for", " ".join(torch.cuda.get_arch_list())
    for number in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(number)
        yield f"gpu {number}", f"{found.name}, {found.total_memory / GIB:.1f} GiB, sm_{found.major}{found.minor}"


def _distribution() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown distribution")
    except OSError:
        return "unknown distribution"


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
