"""Reports as lines of JSON, exactly one per finished round or batch, also after kills."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codezero.errors import StateError, told_as
from codezero.runtime.files import append, replace_file
from codezero.runtime.rotation import set_aside


class ReportFile:
    """A `.jsonl` file of reports, whose field `number_key` is their number."""

    def __init__(self, path: Path, number_key: str) -> None:
        self._path, self._number_key = path, number_key
        self._trouble = StateError, f"cannot write {path}", "free space or give another tracking.log_dir"

    def resume(self, last: Any | None) -> None:
        """Makes the file end with the last saved report: drops incomplete and newer lines, adds a missing last one. If
        `last` is None, the file of an earlier run is renamed to a free name.

        A node that was killed after saving a round and before reporting it has no line of it; one that lost its newest
        checkpoint has lines of rounds that it will repeat.
        """
        if last is None:
            self.set_aside()
            return
        number = getattr(last, self._number_key)
        kept = self.lines(number)
        if not kept or self._number_of(kept[-1]) < number:
            kept.append(_to_json(last))
        self.replace(kept)

    def lines(self, number: float = math.inf) -> list[str]:
        """Returns the complete lines of reports up to this number. Raises StateError: the file cannot be read."""
        with told_as(*self._trouble):
            text = self._path.read_text(encoding="utf-8", errors="replace") if self._path.exists() else ""
        return [line for line in text.splitlines() if 0 <= self._number_of(line) <= number]

    def replace(self, lines: Sequence[str]) -> None:
        """Replaces the contents of the file by these lines. Raises StateError: it cannot be written."""
        with told_as(*self._trouble):
            replace_file(self._path, "".join(line + "\n" for line in lines), sync=True)

    def append(self, report: Any) -> None:
        """Appends a report. Raises StateError if it cannot be written."""
        with told_as(*self._trouble):
            append(self._path, f"{_to_json(report)}\n".encode(), sync=True)

    def set_aside(self) -> None:
        """Renames the file, if there is one, to a free name. Raises StateError: it cannot be renamed."""
        with told_as(*self._trouble):
            set_aside(self._path)

    def _number_of(self, line: str) -> int:
        """Returns the number of the report in a line; -1 for an incomplete line or another format."""
        try:
            number = json.loads(line)[self._number_key]
        except (ValueError, KeyError, TypeError):
            return -1
        return number if isinstance(number, int) else -1


def _to_json(report: Any) -> str:
    return json.dumps(dataclasses.asdict(report), allow_nan=False)
