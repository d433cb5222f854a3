"""SQLite: reading a database that a node may be writing, also where its folder cannot be written; transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from codezero.errors import LedgerError

BUSY_S = 1.0
"""Longest wait for a file that is being made or mended."""


@contextmanager
def reading(path: Path, what: str) -> Iterator[sqlite3.Connection]:
    """`what` names the file in words. Raises LedgerError: it is missing, damaged or unreadable."""
    try:
        with read_only(path, BUSY_S) as db:
            yield db
    except (sqlite3.Error, ValueError, TypeError) as error:  # the latter two: rows of another form
        raise LedgerError(f"cannot read the {what} {path}: {error}; see that the file is whole and readable") from error


@contextmanager
def read_only(path: Path, timeout_s: float) -> Iterator[sqlite3.Connection]:
    """A connection that holds no lock that a writer waits for. Raises sqlite3.Error, at the end too: what was read
    meanwhile is then not to be used.

    A database in WAL mode that nobody has open is one file, and SQLite makes its `-shm` anew to read it, which a folder
    mounted read-only (a container's) refuses. That file is then read as one that does not change (`immutable=1`),
    which SQLite does not check: https://www.sqlite.org/uri.html#uriimmutable. So it is checked here.
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
    """What changes when the file does; None while somebody has it open to write or left something unfinished beside it,
    and if it is not there."""
    try:
        if any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal")):
            return None
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All writes inside, or none of them, whatever ends it. Raises sqlite3.Error: they cannot be written."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
