"""Limits of this process on memory and cores: of a container, a systemd unit, or a batch system's job.

The kernel's control groups set them. A limit may be set on any group from the process's own up to the root, and the
tightest holds. In a container the root that is mounted is the container's own group, below which /proc/self/cgroup may
name groups that are not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import psutil

ROOT, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
UNLIMITED = 2**62
"""More bytes than any machine has; version 1 writes a number of this size where there is no limit."""


def memory_left(root: Path = ROOT, membership: Path = MEMBERSHIP) -> int:
    """Returns the bytes that this process may still use under its limits; `UNLIMITED` without one.

    Cached file pages count as used by a group, but are freed on demand.
    """
    left = UNLIMITED
    files = [("", "memory.max", "memory.current"), ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes")]
    for controller, limit, used in files:
        for group in _groups(controller, root, membership):
            try:
                most, taken = (group / limit).read_text().strip(), int((group / used).read_text())
                pages = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):
                continue
            if most != "max":
                whole = "total_" * ("total_active_file" in pages)  # version 1 has the groups below under these names
                cached = int(pages.get(f"{whole}inactive_file", 0)) + int(pages.get(f"{whole}active_file", 0))
                left = min(left, int(most) - taken + cached)
    return left


def cpu_quota(root: Path = ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """Returns the number of cores that this process has the time of, such as 1.5; None without a limit."""
    quotas = []
    for controller, files in (("", ["cpu.max"]), ("cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"])):
        for group in _groups(controller, root, membership):
            try:
                most, period = " ".join((group / file).read_text(encoding="ascii") for file in files).split()
                if most not in ("max", "-1"):
                    quotas.append(int(most) / int(period))
            except (OSError, ValueError, ZeroDivisionError):
                continue
    return min(quotas, default=None)


def usable_cores(*, logical: bool = False) -> int:
    """Returns the number of cores that this process may use, at least 1: with `logical`, hardware threads count."""
    cores = psutil.cpu_count(logical=logical) or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        cores = min(cores, len(os.sched_getaffinity(0)))
    quota = cpu_quota()
    return cores if quota is None else max(1, min(cores, round(quota)))


def _groups(controller: str, root: Path, membership: Path) -> Iterator[Path]:
    """Yields the folders of the process's groups, from its own to the root; `controller` is one of version 1, or empty
    for version 2."""
    base, path = root / controller, PurePosixPath("/")
    try:
        for line in membership.read_text(encoding="utf-8", errors="replace").splitlines():
            _, controllers, name = line.split(":", 2)
            if controller in controllers.split(","):
                path = PurePosixPath("/", name)
    except (OSError, ValueError):
        pass
    for one in (path, *path.parents):
        yield base / one.relative_to("/")
