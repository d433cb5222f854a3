"""Limits of the kernel's control groups on this process: of a container, a systemd unit, or a batch system's job.

A limit may be set on any group from the process's own up to the root, and the tightest holds. In a container the root
that is mounted is the container's own group, below which /proc/self/cgroup may name groups that are not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

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
                cached = int(pages.get("inactive_file", 0)) + int(pages.get("active_file", 0))
                left = min(left, int(most) - taken + cached)
    return left


def cpu_quota(root: Path = ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """Returns the number of cores that this process may use (version 2 only), or None without a limit."""
    quotas = []
    for group in _groups("", root, membership):
        try:
            most, period = (group / "cpu.max").read_text(encoding="ascii").split()
            if most != "max":
                quotas.append(int(most) / int(period))
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return min(quotas, default=None)


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
