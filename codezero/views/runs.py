"""The files that nodes leave on disk, read while they run or after: for `codezero status`, the dashboard and reports.

This module only reads. Files may be torn, old, or hold text of peers; a malformed line is skipped, and text stays
untrusted.
"""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from codezero.errors import StateError, told_as
from codezero.observe import probes
from codezero.observe.batches import PROPOSED
from codezero.observe.cases import CASES
from codezero.observe.groups_file import SeenRound
from codezero.observe.probes import Learning, ProbeReport, learning
from codezero.observe.roles import PROPOSER, ROLES, SOLVER, VERIFIER, folder_of
from codezero.observe.status import Status, read_status
from codezero.proposals import BatchReport
from codezero.reports import CasesReport, RoundReport
from codezero.runtime.state import holder
from codezero.views.groups import GroupOrigin, GroupsIndex
from codezero.views.growing import LastFile

T = TypeVar("T")
REPORTS = {SOLVER: "rounds.jsonl", PROPOSER: PROPOSED.file, VERIFIER: CASES.file}
"""The file of the finished rounds or batches of each role, in the folder of its logs."""
RECORDS: dict[str, type[Any]] = {SOLVER: RoundReport, PROPOSER: BatchReport, VERIFIER: CasesReport}
"""The record of each line of these files."""
_LINE_BYTES = 8192
"""A number of bytes that no report exceeds."""
_MARKS = ("status.json", "settings.json", "checkpoints", "ledger.sqlite", "node.lock")
"""Files and folders of which a state folder has at least one."""


class JsonLines(Generic[T]):
    """A growing file with one record a line; each read takes in only the new lines."""

    def __init__(self, path: Path, kind: type[T], most: int | None = None) -> None:
        """`most` is how many of the newest records are kept; None keeps all."""
        self._path, self._decoder, self._most = path, msgspec.json.Decoder(kind), most
        self._last, self._offset = LastFile(), 0
        self._records: list[T] = []

    def _start(self, size: int) -> int:
        """Returns the offset to start at in a file of this size, since its end may be enough."""
        return 0 if self._most is None else max(0, size - self._most * _LINE_BYTES)

    def read(self) -> list[T]:
        """Returns the records so far; empty if there is no file. A file that was replaced or cut is read anew."""
        try:
            with self._path.open("rb") as file:
                if self._last.is_replaced_by(file, self._offset):
                    self._offset, self._records = 0, []
                file.seek(self._offset or self._start(os.fstat(file.fileno()).st_size))
                if self._offset == 0 and file.tell():
                    file.readline()  # the rest of a line
                self._offset = file.tell()
                whole, newline, _ = file.read().rpartition(b"\n")  # the last line may be half written
        except OSError:
            return []
        self._offset += len(whole) + len(newline)
        for line in whole.split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
                self._records.append(self._decoder.decode(line))
        if self._most is not None:
            del self._records[: -self._most]
        return list(self._records)


class Run:
    """The files of one node, in `folder`, its state, and in the folder of its logs. Nodes of several roles may share a
    folder of logs: each reader of what one role writes is empty for a node of another. Safe for several threads."""

    def __init__(self, name: str, role: str, folder: Path, most: int | None = None) -> None:
        """`most` is how many of the newest rounds or batches are kept in memory; None keeps all."""
        self.name, self.role, self.folder, self.solves = name, role, folder, role == SOLVER
        self.key = name
        """The name by which the dashboard shows it, which is unique there."""
        status = read_status(folder)
        self.log_dir = folder / status.log_dir if status is not None else _usual_log_dir(folder, role)
        self._finished = JsonLines(self.log_dir / REPORTS[role], RECORDS[role], most)
        self._series = probes.PAIR if role == VERIFIER else probes.NODE
        self._probes = JsonLines(self.log_dir / self._series.file, ProbeReport)
        self._learning: tuple[list[ProbeReport], Learning] = [], learning([], self._series)
        self._groups = GroupsIndex(self.log_dir)
        self._lock = threading.Lock()

    def status(self) -> Status | None:
        """Returns the node's present or last status; None if it never noted one."""
        return read_status(self.folder)

    def pid(self) -> int | None:
        """Returns the process id of the node that runs in the folder; None if none does."""
        with suppress(StateError):
            return holder(self.folder)
        return None

    def finished(self) -> list[Any]:
        """Returns the finished rounds or batches, ascending, each as it went last."""
        with self._lock:
            found = self._finished.read()
        number_of = attrgetter("round" if self.solves else "batch")
        if all(number_of(one) < number_of(after) for one, after in itertools.pairwise(found)):
            return found
        latest = {number_of(one): one for one in found}
        return [latest[number] for number in sorted(latest)]

    def reports(self) -> list[RoundReport]:
        """Returns the finished rounds of a solver."""
        return self.finished() if self.solves else []

    def batches(self) -> list[BatchReport]:
        """Returns the finished batches of a proposer."""
        return self.finished() if self.role == PROPOSER else []

    def cases(self) -> list[CasesReport]:
        """Returns the finished batches of a test writer."""
        return self.finished() if self.role == VERIFIER else []

    def learning(self) -> Learning | None:
        """Returns the result of a solver's probes, also of one beside a test writer: whether it learns; None for a run
        without a solver."""
        with self._lock:
            found = self._probes.read()
            if found != self._learning[0]:
                self._learning = found, learning(found, self._series)
            told = self._learning[1]
        if self.role == VERIFIER:
            batches = self.cases()  # before the first batch only probes tell
            return told if (batches[-1].solver if batches else found) else None
        return told if self.solves else None

    def rounds_with_groups(self) -> dict[int, tuple[GroupOrigin, ...]]:
        """Returns a solver's latest rounds, of which all that was written is kept, with the origins of their groups."""
        with self._lock:
            return self._groups.rounds() if self.solves else {}

    def groups_of(self, number: int) -> SeenRound | None:
        """Returns all that was written of a solver's round, as last played; None if it is not kept."""
        with self._lock:
            return self._groups.read(number) if self.solves else None

    def groups(self) -> list[SeenRound]:
        """Returns a solver's latest rounds with all that was written of them, the newest last."""
        return [found for number in self.rounds_with_groups() if (found := self.groups_of(number)) is not None]


def find_runs(folder: Path, most: int | None = None) -> list[Run]:
    """Returns the runs in a state folder, or in a folder of many such as `swarms/home` and `gpus`, by name; `most` as
    for Run.

    Raises StateError if there are none, or the folder cannot be read.
    """
    with told_as(StateError, f"cannot read {folder}", "ask as the user who runs the node"):
        # A folder of many is tried first: a ledger that they share makes it look like a state folder.
        runs = [run for state in sorted(folder.glob("*/state")) for run in _runs_in(state, state.parent.name, most)]
        runs = runs or _runs_in(folder, "", most)
    if not runs:
        raise StateError(
            f"no node has run in {folder}: give the state folder of one (state_dir, default state), or the folder of a "
            "swarm such as swarms/home"
        )
    return runs


def _runs_in(state: Path, name: str, most: int | None) -> list[Run]:
    return [Run(name or role, role, folder_of(state, role), most) for role in roles_in(state)]


def roles_in(state: Path) -> list[str]:
    """Returns the roles that nodes with this state_dir have played."""
    return [role for role in ROLES if any((folder_of(state, role) / mark).exists() for mark in _MARKS)]


def _usual_log_dir(folder: Path, role: str) -> Path:
    """Returns the usual folder of logs beside a state folder, for a node that did not note its own."""
    state = folder if role == SOLVER else folder.parent
    return state.parent / "logs"
