"""Times, durations, numbers, sizes and lists as text, in the same form everywhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

GIB = 1 << 30
"""Bytes in a GiB."""


def brief(value: float) -> str:
    """Returns seconds in short form, such as 8s, 2m05s, 3h07m or 4d02h."""
    value = max(0, round(value))
    if value < 60:
        return f"{value}s"
    if value < 3600:
        return f"{value // 60}m{value % 60:02d}s"
    if value < 86400:
        return f"{value // 3600}h{value % 3600 // 60:02d}m"
    return f"{value // 86400}d{value % 86400 // 3600:02d}h"


def span(value: float) -> str:
    """Returns seconds for a sentence, such as 8 s, 2 min, 3 h 7 min or 4 days; a dash for 1e12 or more, and for NaN."""
    if not abs(value) < 1e12:
        return "\N{EN DASH}"
    whole = max(0, round(value))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} days"


def counted(count: float, noun: str) -> str:
    """Returns a number with its noun, such as 1 round or 3 rounds."""
    return f"{count} {noun}{'s' * (count != 1)}"


def tallied(counts: Mapping[str, int]) -> str:
    """Returns counts with their names, such as 2 stale, 1 banned."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def gib(size: float) -> str:
    """Returns bytes in GiB, such as 1.5 GiB."""
    return f"{size / GIB:.1f} GiB"


def shortage(needed: float, usable: float, what: str) -> str:
    """Returns text such as 6.4 GiB of memory where 6.3 GiB can be used, with as many decimals as tell the sizes
    apart. Raises ValueError: they are equal."""
    for decimals in range(1, 11):  # the tenth tells bytes apart
        sizes = [f"{size / GIB:.{decimals}f} GiB" for size in (needed, usable)]
        if sizes[0] != sizes[1]:
            return f"{sizes[0]} of {what} where {sizes[1]} can be used"
    raise ValueError(f"no shortage: {needed} of {usable} bytes")


def listed(names: Sequence[str], most: int) -> str:
    """Returns the first `most` names and the number of the others, such as a, b and 3 more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def utc(at_s: float, to: str = "seconds") -> str:
    """Returns a Unix time in UTC, in ISO 8601, such as 2026-11-21T23:59:59Z, to the second or to `milliseconds`; a dash
    for 0, which stands for an unknown time, and for times out of range."""
    try:
        at = datetime.fromtimestamp(at_s, timezone.utc)
    except (OverflowError, OSError, ValueError):
        at_s = 0
    return at.isoformat(timespec=to).replace("+00:00", "Z") if at_s > 0 else "\N{EN DASH}"


def local(at_s: float) -> str:
    """Returns a Unix time as date and time of this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
