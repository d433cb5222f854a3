"""Results on disk, one line of JSON per solution, with the settings of their run, so that a stopped run can
continue."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from codezero.errors import StateError, told_as
from codezero.runtime.files import try_lock


class Results:
    """The results in a file, which this process locks while it is open."""

    def __init__(
        self,
        path: Path,
        made_with: Path,
        settings: Mapping[str, Any],
        lines_a_group: int = 1,
        fields: Collection[str] = (),
    ) -> None:
        """Opens or creates the results in `path` and the settings in `made_with`. Cuts off what a killed run left
        incomplete: a group of fewer lines, or a line without one of `fields`.

        Raises StateError if a file cannot be used, is in use, or the results were made with other settings.
        """
        self._path, self._made_with, self._fields = path, made_with, set(fields)
        if path.exists() and not path.is_file():
            raise StateError(f"{path} is not a file, so no run could continue from it: give another --out")
        with told_as(StateError, f"cannot use {path}", "give another --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("a+b")
            try:
                if not try_lock(self._file):
                    raise StateError(f"{path} is in use by another codezero: give another --out")
                self._check(dict(settings))
                self.rows = self._read(lines_a_group)
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # it tries lines again that `append` has told of
            self._file.close()

    @property
    def groups(self) -> set[str]:
        """Names of the finished groups."""
        return {row["group"] for row in self.rows}

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Appends the lines of one group and syncs the file. Raises StateError if it cannot be written."""
        with told_as(StateError, f"cannot write to {self._path}", "results so far are kept"):
            self._file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
            self._file.flush()
            os.fsync(self._file.fileno())
        self.rows.extend(rows)

    def _check(self, settings: dict[str, Any]) -> None:
        path = self._made_with
        if not self._file.tell():  # nothing was measured yet, so that settings may still change
            path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            return
        try:
            made_with = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StateError(f"{self._path} was made by something else: give another --out") from None
        except (OSError, ValueError) as error:
            raise StateError(f"cannot read {path}: {error}; give another --out") from error
        for key in sorted(made_with.keys() | settings.keys()):
            if made_with.get(key) != settings.get(key):
                raise StateError(
                    f"{self._path} holds results with {key}={made_with.get(key)}, not {settings.get(key)}: "
                    "give another --out, or the same settings to continue"
                )

    def _read(self, lines_a_group: int) -> list[dict[str, Any]]:
        """Returns the lines of complete groups, and cuts off the rest of the file."""
        self._file.seek(0)
        rows: list[dict[str, Any]] = []
        pending: list[dict[str, Any]] = []
        keep = position = 0
        for line in self._file:
            position += len(line)
            try:
                row = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                row = None
            if not isinstance(row, dict) or not self._fields <= row.keys():
                break
            pending.append(row)
            if len(pending) == lines_a_group:
                rows += pending
                pending, keep = [], position
        self._file.seek(0, os.SEEK_END)
        if self._file.tell() != keep:
            self._file.truncate(keep)
        return rows
