"""SQLite: transactions, and reading a database during a node's writes, also in a read-only folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from codezero.errors import LedgerError

BUSY_S = 1.0
"""Longest wait for a database that is being created or recovered, in seconds."""


def is_missing(path: Path) -> bool:
    """Returns True if there is no such file. False also if that cannot be found out, for want of rights or as its disk
    is gone; `reading` then says that it cannot be read."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


@contextmanager
def reading(path: Path, what: str) -> Iterator[sqlite3.Connection]:
    """Yields a read-only connection. Raises LedgerError, which calls the file `what`, if it is missing, damaged or
    unreadable."""
    try:
        with read_only(path, BUSY_S) as db:
            yield db
    except (sqlite3.Error, ValueError, TypeError) as error:  # the latter two: rows of another format
        raise LedgerError(f"cannot read the {what} {path}: {error}; check that it is complete and readable") from error


@contextmanager
def read_only(path: Path, timeout_s: float) -> Iterator[sqlite3.Connection]:
    """Yields a read-only connection, which never blocks a writer. Raises sqlite3.Error, also at its end: the data read
    until then must not be used.

    To read a database in WAL mode that no process has open, SQLite creates its `-shm` file, which fails in a folder
    mounted read-only (a container's). The database is then read with `immutable=1`, for which SQLite does not check
    that it stays unchanged (https://www.sqlite.org/uri.html#uriimmutable), so this function does.
    """
    uri = path.absolute().as_uri()
    with closing(sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=timeout_s)) as db:
        try:
            db.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError:
            before = _at_rest(path)
            if before is None:
                raise
        else:
            yield db
            return
    with closing(sqlite3.connect(f"{uri}?immutable=1", uri=True)) as db:
        yield db
    if _at_rest(path) != before:
        raise sqlite3.OperationalError("a node began to write it meanwhile: try again")


def _at_rest(path: Path) -> tuple[int, int, int] | None:
    """Returns inode, size and modification time of the file; None if it is missing, and while it has a write-ahead log
    or a journal."""
    try:
        if any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal")):
            return None
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commits all writes inside, or none if it ends by an exception. Raises sqlite3.Error if they cannot be written."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
