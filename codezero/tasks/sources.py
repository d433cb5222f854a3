"""The two kinds of task source in a mixture: a list held in memory, and rows streamed from the hub.

Both go through their tasks in an order that depends only on seed, name and epoch, so that two small numbers are the
position. A position saved with other rows means nothing: the source then begins anew and logs a warning, because
weights that were trained for days are worth more than the order of tasks.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from codezero.errors import TaskError
from codezero.prompts import solver as prompt
from codezero.tasks.hub import HubUnreachable
from codezero.tasks.rows import BadRow
from codezero.tasks.withheld import id_of
from codezero.types import Task

logger = logging.getLogger(__name__)

_OTHER_ROWS = (
    "tasks of %s are not those of the saved position (file, split or levels changed): starting them over. "
    "Nothing has to be done, if that was meant"
)


class ListSource:
    """Tasks in memory, in a new full permutation every epoch."""

    def __init__(self, name: str, tasks: Sequence[Task], seed: int) -> None:
        """`tasks` holds at least one."""
        self.name = name
        self._tasks = tuple(tasks)
        self._seed = seed
        asked = (prompt.showing_all(task.question, task.tests) for task in tasks)  # however many tests are shown
        ids = "".join(hashlib.md5(one.encode(), usedforsecurity=False).hexdigest() for one in asked)
        self._rows = hashlib.md5(ids.encode(), usedforsecurity=False).hexdigest()
        self._epoch = 0
        self._cursor = 0
        self._order = self._order_of_epoch()

    @property
    def is_through(self) -> bool:
        """True if every task has been drawn."""
        return self._epoch > 0 or self._cursor == len(self._tasks)

    def next_task(self) -> Task:
        if self._cursor == len(self._tasks):
            self._epoch, self._cursor = self._epoch + 1, 0
            self._order = self._order_of_epoch()
        task = self._tasks[self._order[self._cursor]]
        self._cursor += 1
        return task

    def find(self, names: Collection[str]) -> Iterator[Task]:
        """Returns the tasks whose `id_of` is among `names`."""
        return (task for task in self._tasks if id_of(task) in names)

    def _order_of_epoch(self) -> list[int]:
        # Sorting by random() and not shuffle(): only random() is promised to stay the same in later Pythons.
        rng = random.Random(f"{self._seed}/{self.name}/{self._epoch}")
        return sorted(range(len(self._tasks)), key=lambda _: rng.random())

    def state_dict(self) -> dict[str, Any]:
        """Returns the number of tasks drawn in this epoch, the epoch, and a fingerprint of the rows."""
        return {"rows": self._rows, "epoch": self._epoch, "cursor": self._cursor}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where `state` was taken; with other rows, begins anew and warns."""
        self._epoch, self._cursor = state["epoch"], state["cursor"]
        if state["rows"] != self._rows:
            logger.warning(_OTHER_ROWS, self.name)
            self._epoch = self._cursor = 0
        self._order = self._order_of_epoch()


class StreamSource:
    """Rows that come one by one and become tasks on the way.

    Resuming reads the rows of the epoch again up to the position: exact, but a matter of seconds to many minutes
    (docs/measurements.md).
    """

    def __init__(
        self,
        name: str,
        rows: str,
        rows_of_epoch: Callable[[int], Iterator[object]],
        to_task: Callable[[object], Task],
        skipped: Counter[str],
        *,
        passes_differ: bool = False,
    ) -> None:
        """`rows` names what is streamed; skipped rows are counted by reason in `skipped`. `passes_differ` if each epoch
        has other tasks, not the same ones in another order."""
        self.name = name
        self._rows = rows
        self._rows_of_epoch = rows_of_epoch
        self._to_task = to_task
        self._skipped = skipped
        self._passes_differ = passes_differ
        self._epoch = 0
        self._cursor = 0
        self._num_usable = 0
        self._stream: Iterator[object] | None = None

    @property
    def is_through(self) -> bool:
        """True if every task has been drawn; known only when the first comes again."""
        return self._epoch > 0

    def next_task(self) -> Task:
        """Returns the next task. Raises TaskError if a whole epoch has no usable row, HubUnreachable if the stream
        broke off; the next call then continues where it did."""
        try:
            if self._stream is None:
                self._stream = self._rows_of_epoch(self._epoch)
                for _ in range(self._cursor):
                    next(self._stream, None)
            return self._next_usable(self._stream)
        except HubUnreachable:
            self._stream = None
            raise

    def find(self, names: Collection[str]) -> Iterator[Task]:
        """Yields the tasks drawn before whose `id_of` is among `names`, read again. Raises HubUnreachable."""
        left = set(names)
        first = 0 if self._passes_differ else max(self._epoch - 1, 0)
        for epoch in range(self._epoch, first - 1, -1):
            if left:
                num_rows = self._cursor if epoch == self._epoch else None
                for task in self._usable(itertools.islice(self._rows_of_epoch(epoch), num_rows)):
                    if id_of(task) in left:
                        left.remove(id_of(task))
                        yield task

    def _usable(self, rows: Iterator[object]) -> Iterator[Task]:
        for row in rows:
            try:
                task = self._to_task(row)
            except BadRow:
                continue  # counted when it is drawn
            yield task

    def _next_usable(self, stream: Iterator[object]) -> Task:
        while True:
            for row in stream:
                self._cursor += 1
                try:
                    task = self._to_task(row)
                except BadRow as reason:
                    self._skipped[f"{self.name}: {reason}"] += 1
                else:
                    self._num_usable += 1
                    return task
            if self._num_usable == 0:
                raise TaskError(
                    f"{self._rows} has no usable row among its {self._cursor}: choose another split or tasks=builtin"
                )
            self._epoch, self._cursor, self._num_usable = self._epoch + 1, 0, 0
            stream = self._stream = self._rows_of_epoch(self._epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the numbers of rows read and of tasks made of them in this epoch, the epoch, and what is streamed."""
        return {"rows": self._rows, "epoch": self._epoch, "cursor": self._cursor, "usable": self._num_usable}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where `state` was taken; with other rows, begins anew and warns."""
        self._epoch, self._cursor = state["epoch"], state["cursor"]
        self._num_usable = state.get("usable", self._cursor)  # version 0.1.0 did not note it
        if state["rows"] != self._rows:
            logger.warning(_OTHER_ROWS, self.name)
            self._epoch = self._cursor = self._num_usable = 0
        self._stream = None
