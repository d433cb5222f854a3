"""Rows of a dataset file on this machine, and the checks every row has to pass before it becomes a Task.

The file is the user's own, yet its rows may hold anything: one that cannot be used is a `BadRow`, which is counted and
skipped; only a file without any usable row is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codezero.errors import TaskError, first_line
from codezero.tasks.testcases import MAX_SOURCE_CHARS

MAX_DESCRIPTION_CHARS = 6000
"""The most characters of a problem, without its tests."""

MAX_LINE_BYTES = 32 * 2**20
"""The most bytes of a JSON line; longer ones are skipped. Whole CodeContests rows with solutions stay well below."""

PARQUET_BATCH_ROWS = 64
"""Rows decoded at once, so that a row group of any size needs little memory."""


class BadRow(Exception):
    """A row that cannot become a task. It is counted under its message: a reason, which never quotes the row."""


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[object]:
    """Yields every row of a .jsonl or .parquet file, in file order; an unreadable row comes as a `BadRow` value.

    Only `columns` of a parquet file are read.

    Raises TaskError if the file is missing, empty, not readable, of another kind, or a damaged parquet file.
    """
    try:
        if not path.exists():
            raise TaskError(f"{path} does not exist: give the path of a .jsonl or .parquet file")
        if not path.is_file():
            raise TaskError(f"{path} is not a file: give the path of one .jsonl or .parquet file")
        if path.suffix not in (".jsonl", ".parquet"):
            raise TaskError(
                f"{path} ends in '{path.suffix}': give a .jsonl or .parquet file in the dataset's own schema"
            )
        if path.stat().st_size == 0:
            raise TaskError(f"{path} is empty (0 bytes): download it again or give another file")
        yield from _parquet_rows(path, columns) if path.suffix == ".parquet" else _json_rows(path)
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())
        raise TaskError(f"{path} cannot be read ({reason}): make it readable or give another file") from error


def _json_rows(path: Path) -> Iterator[object]:
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                yield BadRow(f"line is longer than {MAX_LINE_BYTES // 2**20} MiB")
            elif line.strip():
                yield _parse_line(line)


def _parse_line(line: bytes) -> object:
    try:
        # utf-8-sig: some editors put a byte order mark before the first line.
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        # ValueError covers broken UTF-8, broken JSON and integers too long to convert.
        return BadRow("line is not JSON")


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[object]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            if not present:
                raise TaskError(f"{path} has none of the columns {', '.join(columns)}: give a file with that schema")
            for batch in file.iter_batches(PARQUET_BATCH_ROWS, columns=present):
                for i in range(batch.num_rows):
                    yield _decode_row(batch.slice(i, 1))
    except pa.ArrowException as error:
        raise TaskError(f"{path} is not an intact parquet file ({first_line(error)}): download it again") from error


def _decode_row(batch: object) -> object:
    try:
        return batch.to_pylist()[0]  # type: ignore[attr-defined]
    except UnicodeDecodeError:
        return BadRow("row is not valid Unicode")
    except (ValueError, OverflowError, TypeError):  # such as a date after the year 9999, or in no known time zone
        return BadRow("row has a value that cannot be read")


def text_field(row: object, key: str, max_chars: int) -> str:
    """Returns `row[key]` with plain newlines and without surrounding white space: 1 to `max_chars` characters.

    Raises BadRow if the row is not a mapping, or the field is missing, not text, empty, too long, or not encodable.
    """
    if not isinstance(row, Mapping):
        raise BadRow("row is not a mapping of fields")
    return checked_text(row.get(key), key, max_chars)


def checked_text(value: object, name: str, max_chars: int) -> str:
    """Returns a value out of a row, checked as by `text_field`; `name` is what the reason calls it."""
    if not isinstance(value, str):
        raise BadRow(f"{name} is missing or not text")
    if len(value) > max_chars:
        raise BadRow(f"{name} is longer than {max_chars} characters")
    text = value.replace("\r\n", "\n").strip()
    if not text:
        raise BadRow(f"{name} is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON may carry half of a surrogate pair, which no peer could decode.
        raise BadRow(f"{name} is not valid Unicode") from None
    return text


def pairs(tests: object, given: str, expected: str, name: str) -> list[tuple[object, object]]:
    """Returns the pairs of two lists, of inputs and outputs, in a mapping. Raises BadRow: the tests have another
    form."""
    if not isinstance(tests, Mapping):
        raise BadRow(f"{name} is missing or not a mapping")
    inputs, outputs = tests.get(given), tests.get(expected)
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise BadRow(f"{name} does not pair inputs with outputs")
    return list(zip(inputs, outputs, strict=True))


def reference_text(value: object) -> str | None:
    """Returns the source of a solution; None if it is not usable text."""
    try:
        return checked_text(value, "a solution", MAX_SOURCE_CHARS)
    except BadRow:
        return None
