"""The tasks that a dataset on the hub has: the ids of all, listed once and kept with the dataset's revision.

A node draws a stream row by row, but has to know a peer's task at once (`known.py`). So a thread reads the dataset once
from end to end, without the columns that no peer sends, and keeps 16 bytes a task in the state folder.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from codezero.runtime.files import replace_file
from codezero.runtime.worker import Worker
from codezero.tasks.hub import HubUnreachable
from codezero.tasks.withheld import id_of
from codezero.types import Task

logger = logging.getLogger(__name__)

MAX_TASKS = 100_000
"""The most tasks that are listed, seven times those of CodeContests; the file then has 1.6 MB."""
MAX_FILE_BYTES = 2 << 20
RETRY_S = 600.0
"""Seconds until a dataset that could not be read is tried again."""
_ID_BYTES = 16


class _Kept(msgspec.Struct, frozen=True):
    """The content of a list's file."""

    of: str
    """The listed source: dataset, split, the settings that decide which rows are tasks, and revision."""
    digest: bytes
    """SHA-256 of `ids`."""
    ids: bytes


class HubTaskIds:
    """The ids of a dataset's tasks. One thread fills it while others ask."""

    def __init__(
        self, name: str, what: str, path: Path, revision: Callable[[], str], tasks: Callable[[str], Iterator[Task]]
    ) -> None:
        """Loads the list from `path`, if it is there. `name` is the origin of the tasks and `what` says which they are;
        `tasks` yields those of a revision. Both functions raise HubUnreachable."""
        self.name = name
        self._what, self._path, self._revision_now, self._tasks = what, path, revision, tasks
        self._revision, self._ids = self._load()

    @property
    def is_complete(self) -> bool:
        """True if every task of some revision is listed."""
        return self._revision != ""

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def refresh(self, pause: Callable[[], None]) -> None:
        """Reads the dataset, unless the list is that of its present revision. Tasks count as listed from when they are
        read, those of an earlier revision until the new list is complete.

        Calls `pause` before each task. Raises HubUnreachable: the dataset cannot be read now; and what `pause` raises.
        """
        pause()
        revision = self._revision_now()
        if revision == self._revision:
            return
        logger.info("listing the tasks of %s, once for this revision (%s)", self._what, revision)
        found = set[str]()
        for task in self._tasks(revision):
            pause()
            if len(found) == MAX_TASKS:
                break
            found.add(id_of(task))
            self._ids.add(id_of(task))
        self._revision, self._ids = revision, found
        logger.info("%d tasks of %s are listed", len(found), self._what)
        self._save()

    def _load(self) -> tuple[str, set[str]]:
        """Returns the revision and the ids in the file; an empty revision and no ids if there is no usable file."""
        try:
            if self._path.stat().st_size > MAX_FILE_BYTES:
                raise ValueError(f"more than {MAX_FILE_BYTES} bytes")
            kept = msgspec.msgpack.decode(self._path.read_bytes(), type=_Kept)
            what, _, revision = kept.of.rpartition(" revision ")
            if kept.digest != hashlib.sha256(kept.ids).digest():
                raise ValueError("another checksum than it states")
        except FileNotFoundError:
            return "", set()
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            logger.info("%s is damaged (%s): the tasks are listed again", self._path, error)
            return "", set()
        if what != self._what:
            return "", set()
        starts = range(0, len(kept.ids), _ID_BYTES)
        return revision, {kept.ids[start : start + _ID_BYTES].hex() for start in starts}

    def _save(self) -> None:
        ids = b"".join(map(bytes.fromhex, sorted(self._ids)))
        kept = _Kept(of=f"{self._what} revision {self._revision}", digest=hashlib.sha256(ids).digest(), ids=ids)
        try:
            replace_file(self._path, msgspec.msgpack.encode(kept), sync=True)
        except OSError as error:
            logger.warning(
                "cannot write %s: %s; the list is used, and made again at the next start: free space or make the "
                "folder writable",
                self._path,
                error.strerror,
            )


class Lister:
    """A thread that completes lists, one after another."""

    def __init__(self, lists: Sequence[HubTaskIds]) -> None:
        self._lists = lists
        self._worker = Worker("task lists", self._work)
        self._told = set[str]()
        """The names of the lists of which a warning has told."""

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Ends the thread; a list that is not complete is begun again at the next start."""
        self._worker.stop(1.0)

    def _work(self) -> float | None:
        wait_s = None
        for one in self._lists:
            try:
                one.refresh(lambda: self._worker.pause(0))
            except HubUnreachable as error:
                wait_s = RETRY_S
                if not one.is_complete:  # else it only cannot be compared with the hub's newest
                    self._tell(one, error)
        return wait_s

    def _tell(self, one: HubTaskIds, error: HubUnreachable) -> None:
        if one.name not in self._told:
            logger.warning(
                "the tasks of %s cannot be listed: %s. Peers' groups on those that are not listed yet are not trained "
                "on (unlisted_task). Nothing has to be done: it is tried again every ten minutes; tasks.%s.path=FILE "
                "needs no hub",
                one.name,
                error,
                one.name,
            )
        self._told.add(one.name)
