"""The state folder of a node: one node at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codezero.errors import StateError


@contextmanager
def locked_state(folder: Path) -> Iterator[Path]:
    """Holds the folder for this process, making it if needed. The lock goes with the process, however it ends.

    Raises StateError: another live node holds it, or it cannot be made or written.
    """
    lock = folder / "node.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = lock.open("a+", encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot use state folder {folder}: {error.strerror}; give another state_dir") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise StateError(
                f"state folder {folder} is in use by the node with process id {file.read().strip() or 'unknown'}: stop "
                "that node, or give this one another state_dir"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield folder
