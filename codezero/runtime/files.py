"""Replaces files in one step: a reader finds all of the old content or all of the new, also after a kill."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: str | bytes, *, private: bool = False, sync: bool = False) -> None:
    """Replaces a file; text is written in UTF-8. A `private` file can be read by its owner only; with `sync` the
    content is on the disk before it takes the place of the old.

    Raises OSError: it cannot be written; the old content stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # left by a killed process, or a trap
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(temporary, flags, 0o600 if private else 0o666), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
