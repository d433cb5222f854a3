"""Keeps files that only grow within bounds: one earlier file is kept, so that two together are the most there is."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 20_000_000


def earlier(path: Path) -> Path:
    """Where the older part of a file lies: `output.1.log` for `output.log`."""
    return path.with_suffix(f".1{path.suffix}")


def rotate(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Puts a file that has grown beyond this aside, in place of the one before; for files that are opened for each
    line. A disk that does not do it costs nothing but the bound."""
    with suppress(OSError):
        if path.stat().st_size > max_bytes:
            os.replace(path, earlier(path))


def cut(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """The same for a file that another process holds open, for appending: it is copied, then emptied. What that process
    writes in between is lost."""
    with suppress(OSError):
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, earlier(path))
            os.truncate(path, 0)
