"""Reading a file that a node may be writing, without a lock that it waits for (SQLite in WAL mode)."""

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
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as db:
            yield db
    except (sqlite3.Error, ValueError, TypeError) as error:  # the latter two: rows of another form
        raise LedgerError(f"cannot read the {what} {path}: {error}; see that the file is whole and readable") from error
