"""Reads the ends of files that another program may have replaced: follows no links, never reads a huge file whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class Unusable(Exception):
    """Raised for a file that is not read; its text says why."""


class Absent(Unusable):
    """Raised where there is no file."""


def text_of(path: Path, most: int) -> str:
    """Returns the last `most` bytes of a file, from the beginning of a line on, as text. Bytes that are not UTF-8 are
    replaced, and zeros, which a power cut leaves in a growing file, are left out.

    Raises Unusable: the file is missing, a link, no plain file, hard-linked (its other name may be any file of the
    user's) or unreadable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as fault:
        raise Absent("it is not there") from fault
    except OSError as fault:
        raise Unusable("it is a link" if path.is_symlink() else f"it cannot be read: {fault.strerror}") from fault
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        is_plain = stat.S_ISREG(found.st_mode)
        raise Unusable("it has several names (hard links)" if is_plain else "it is not a plain file")
    with open(descriptor, "rb") as file:
        start = max(0, found.st_size - most)
        file.seek(start)
        try:
            raw = file.read(most)
        except OSError as fault:
            raise Unusable(f"it cannot be read: {fault.strerror}") from fault
    raw = raw if start == 0 else raw.partition(b"\n")[2]
    return raw.replace(b"\0", b"").decode("utf-8", "replace")
