"""Writes files: in one step, so that a reader finds all of the old content or all of the new, also after a kill; by
whole lines; and with safetensors' errors as the system's own. Reads those whose loss is no error, and locks them."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

T = TypeVar("T")


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


def stored(path: Path, kind: type[T]) -> T | None:
    """Returns the content of a JSON file as this type; None if there is no such file, or it is damaged."""
    import msgspec  # here, so that `codezero doctor` starts where it is not installed

    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def append(path: Path, lines: bytes, *, sync: bool = False) -> None:
    """Appends lines to a file, after the end of a line that a killed process has left torn; with `sync` they are on the
    disk then. Raises OSError: they cannot be written; the file stays as it was."""
    size = path.stat().st_size if path.exists() else 0
    if size:
        with path.open("rb") as file:
            file.seek(size - 1)
            lines = lines if file.read(1) == b"\n" else b"\n" + lines
    try:
        with path.open("ab") as file:
            file.write(lines)
            if sync:
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):  # else a torn line would stay
            os.truncate(path, size)
        raise


def try_lock(file: int | IO[Any], kind: int = fcntl.LOCK_EX) -> bool:
    """Locks an open file until it is closed. Returns False if another process has locked it. Raises OSError: its disk
    has no locks."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def encodable(text: str) -> str:
    """Returns the text with lone surrogates escaped, which UTF-8 does not have."""
    return text.encode(errors="backslashreplace").decode()


def sync_folder(folder: Path) -> None:
    """Has the names in a folder on disk when it returns, so that a power cut undoes no rename. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def safetensors_written(path: Path) -> Iterator[None]:
    """Raises safetensors' errors of writing to `path` as OSError, whose number is in their text only."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        code = int(found[1]) if found else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error
