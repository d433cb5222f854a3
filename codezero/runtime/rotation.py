"""Rotation of files that only grow; one earlier file is kept."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 20_000_000
"""Size from which a file is rotated, in bytes."""


def earlier(path: Path) -> Path:
    """Returns the path of the earlier file: `output.1.log` for `output.log`."""
    return path.with_suffix(f".1{path.suffix}")


def rotate(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Renames a file above `max_bytes` to the earlier one, which it replaces; for files that are opened for each line.
    Errors of the disk are ignored."""
    with suppress(OSError):
        if path.stat().st_size > max_bytes:
            os.replace(path, earlier(path))


def set_aside(path: Path, first: int = 1) -> None:
    """Renames a file, if there is one, to a free name such as `rounds.1.jsonl`, numbered from `first`. Raises OSError:
    the folder cannot be written."""
    if not path.exists():
        return
    number = first
    while (free := path.with_suffix(f".{number}{path.suffix}")).exists():
        number += 1
    os.replace(path, free)


def cut(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Rotates a file that another process has open for appending: copies it, then truncates it. Lines written in
    between are lost."""
    with suppress(OSError):
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, earlier(path))
            os.truncate(path, 0)
