"""The position of each round in `groups.jsonl`, so that a page reads one line and not 40 MB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from codezero.observe import groups_file
from codezero.observe.groups_file import SeenRound
from codezero.runtime.rotation import earlier
from codezero.views.growing import LastFile

MAX_LINE_BYTES = 2 * groups_file.MAX_FILE_BYTES
MAX_HEADS = 256
"""The most groups of a round whose origin is remembered."""
MAX_ID = 200
"""The most characters of a peer or model id that are kept."""


class GroupOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a group."""

    peer_id: str
    model_id: str
    external: bool


class _Line(msgspec.Struct, frozen=True):
    round: int
    groups: list[GroupOrigin]


@dataclass(frozen=True, slots=True)
class _Place:
    offset: int
    length: int
    heads: tuple[GroupOrigin, ...]


_LINE, _ROUND = msgspec.json.Decoder(_Line), msgspec.json.Decoder(SeenRound)


class GroupsIndex:
    """An index of both groups files that a node keeps."""

    def __init__(self, log_dir: Path) -> None:
        path = log_dir / groups_file.NAME
        self._files = (_File(earlier(path)), _File(path))

    def rounds(self) -> dict[int, tuple[GroupOrigin, ...]]:
        """Returns the rounds that can be read, with the origins of their groups."""
        return {number: place.heads for file in self._files for number, place in file.places().items()}

    def read(self, number: int) -> SeenRound | None:
        """Returns a round with all that was written about it; None if it is not there, or no longer."""
        for file in reversed(self._files):
            if (found := file.read(number)) is not None:
                return found
        return None


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._last, self._offset = LastFile(), 0
        self._places: dict[int, _Place] = {}

    def places(self) -> dict[int, _Place]:
        """Returns the place of each round, up to date, the last of a round that occurs twice; empty without a file."""
        try:
            with self._path.open("rb") as file:
                if self._last.is_replaced_by(file, self._offset):
                    self._offset, self._places = 0, {}
                file.seek(self._offset)
                self._note_all(file)
        except OSError:
            self._offset, self._places = 0, {}
        return self._places

    def read(self, number: int) -> SeenRound | None:
        place = self.places().get(number)
        if place is None:
            return None
        try:
            with self._path.open("rb") as file:
                file.seek(place.offset)
                seen = _ROUND.decode(file.read(place.length))
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):  # it was replaced just now, or is damaged
            return None
        return seen if seen.round == number else None

    def _note_all(self, file: BinaryIO) -> None:
        """Notes every complete line from here on, except those that are too long."""
        while line := file.readline(MAX_LINE_BYTES):
            size, short = len(line), True
            while not line.endswith(b"\n"):
                if len(line) < MAX_LINE_BYTES:
                    return  # incomplete
                line, short = file.readline(MAX_LINE_BYTES), False
                size += len(line)
            if short:
                self._note(line)
            self._offset += size

    def _note(self, line: bytes) -> None:
        try:
            found = _LINE.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        heads = tuple(_short(found.groups[:MAX_HEADS]))
        self._places[found.round] = _Place(self._offset, len(line), heads)


def _short(heads: list[GroupOrigin]) -> Iterator[GroupOrigin]:
    for head in heads:
        yield msgspec.structs.replace(head, peer_id=head.peer_id[:MAX_ID], model_id=head.model_id[:MAX_ID])
