"""The weighted mixture of sources that a node draws its tasks from.

With `tasks.draw=uniform` the source of draw number n depends on (seed, n) alone, the grouping of draws into rounds does
not change which tasks come, and the whole position is a handful of integers. Informative draws multiply a source's
weight by what its candidates promise to teach: problems that are all too hard for a policy take few of its attempts.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from codezero.errors import StateError
from codezero.tasks.candidates import EXPLORE, Informative, weighted
from codezero.tasks.hub import HubUnreachable
from codezero.tasks.sources import ListSource, StreamSource
from codezero.tasks.withheld import Withheld
from codezero.types import ScoredGroup, Task

logger = logging.getLogger(__name__)

Source = ListSource | StreamSource | Informative
AWAY_S = 1800.0
"""Seconds until a source that broke off is asked again; where nothing answers, asking takes a tenth of that."""


class Mixture:
    """A ports.TaskSource that draws from several sources by weight."""

    def __init__(
        self,
        shares: Sequence[tuple[Source, float]],
        seed: int,
        skipped: Counter[str],
        withheld: Withheld,
        fallback: Source | None = None,
    ) -> None:
        """Each source comes with its weight relative to the others: one of weight 0 is never drawn from, and at least
        one is above 0. `skipped` counts rows by reason; the sources add to it, and to `withheld`. `fallback` stands in
        for a source that breaks off while the node runs."""
        self.withheld = withheld
        """Solutions and further tests of the tasks."""
        self._seed = seed
        self._num_drawn = 0
        self._fallback = fallback
        self._skipped = skipped
        self._sources = {source.name: source for source, _ in shares}
        self._weights = {source.name: weight for source, weight in shares}
        if fallback is not None:
            self._sources.setdefault(fallback.name, fallback)
            self._weights.setdefault(fallback.name, 0.0)
        self._away_until: dict[str, float] = {}
        # Positions of sources that are missing in this run (weight 0, or no hub), kept for a run that has them again.
        self._parked: dict[str, Any] = {}

    def draw(self, num_tasks: int) -> tuple[Task, ...]:
        """Returns the next tasks. A source without candidates gives all of its tasks once before it repeats one.

        Raises TaskError if a stream has no usable row, or broke off while there is no fallback.
        """
        return tuple(self._next_task() for _ in range(num_tasks))

    def _next_task(self) -> Task:
        name = self._pick()
        self._num_drawn += 1
        if self._fallback is None:
            return self._sources[name].next_task()
        if time.monotonic() >= self._away_until.get(name, 0.0):
            try:
                task = self._sources[name].next_task()
            except HubUnreachable as error:
                self._set_away(name, error)
            else:
                if self._away_until.pop(name, None) is not None:
                    logger.info("%s is there again", name)
                return task
        return self._fallback.next_task()

    def _set_away(self, name: str, error: HubUnreachable) -> None:
        if name not in self._away_until:
            logger.warning(
                "%s: %s; drawing built-in problems in its place. Nothing has to be done: it is tried again every %.0f "
                "minutes; tasks.%s.path=FILE needs no hub",
                name,
                error,
                AWAY_S / 60,
                name,
            )
        self._away_until[name] = time.monotonic() + AWAY_S

    def _pick(self) -> str:
        rng = random.Random(f"{self._seed}/{self._num_drawn}")
        point, explores = rng.random(), rng.random() < EXPLORE
        informative = {name: one for name, one in self._sources.items() if isinstance(one, Informative)}
        learnability = {} if explores else {name: one.mean_learnability for name, one in informative.items()}
        return weighted({name: weight * learnability.get(name, 1.0) for name, weight in self._weights.items()}, point)

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Passes all groups of a round that has ended to the sources that draw by the results of their tasks."""
        for source in self._sources.values():
            if isinstance(source, Informative):
                source.note(groups)

    def take_skipped(self) -> dict[str, int]:
        """Returns the number of rows skipped since the last call, by source and reason."""
        taken = dict(self._skipped)
        self._skipped.clear()
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Returns plain JSON values, without skip counts, which belong to the round that is running."""
        states = {name: source.state_dict() for name, source in self._sources.items()}
        return {"seed": self._seed, "drawn": self._num_drawn, "sources": {**self._parked, **states}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where `state` was taken; weights may differ, and a source that it does not contain begins anew.

        Raises StateError if the state was made with another seed.
        """
        seed, states = state["seed"], state["sources"]
        if seed != self._seed:
            raise StateError(
                f"task position in state_dir was made with seed={seed} but seed={self._seed} is set: "
                f"set seed={seed}, or give another state_dir"
            )
        for name, source in self._sources.items():
            if name in states:
                source.load_state_dict(states[name])
        self._parked = {name: dict(states[name]) for name in states if name not in self._sources}
        self._num_drawn = state["drawn"]
