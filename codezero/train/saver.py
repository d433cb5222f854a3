"""Saves a node's rounds while the next one is played, without a copy of the weights; on a Mac's GPU before it.

    round N ends ─► offer ─► due? ─► a thread writes weights and moments, without a copy
                                                 │
    round N+1:  draw, solve, exchange, score, gradients ─► before_update waits for it ─► weights move

A kill therefore costs the running round and at most one finished round, or those of the last `every_s` seconds if these
are more. They are played again from the checkpoint; docs/how-it-works.md describes the effect on messages sent.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codezero.errors import CheckpointError
from codezero.train.checkpoint import CheckpointStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRound:
    """The contents of a checkpoint."""

    round: int
    policy_version: int
    learner: Mapping[str, Any]
    """Tensors that training changes in place, so that they are valid until the next update only."""
    node: Mapping[str, Any]


class BackgroundSaver:
    """The saver of one node's rounds. It is used from one thread; a second one writes."""

    def __init__(
        self,
        store: CheckpointStore,
        every_s: float,
        saved: Callable[[int, Path], None] = lambda number, path: None,
        clock: Callable[[], float] = time.monotonic,
        device_lock: AbstractContextManager[object] | None = None,
    ) -> None:
        """`saved` is called with the round and folder of each written checkpoint. `every_s` 0 saves every round. With
        `device_lock` the caller waits while a checkpoint is written, within it: for devices that two threads must not
        use at once."""
        self._store, self._every_s, self._saved, self._clock = store, every_s, saved, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._unsaved: FinishedRound | None = None
        self._writing: tuple[FinishedRound, float, Future[tuple[Path, float]]] | None = None
        self._device_lock = device_lock
        self._saved_as_of_s = -math.inf
        """The time at which the writing of the newest checkpoint began."""
        self._offered_s, self._write_s = -math.inf, 0.0

    def offer(self, finished: FinishedRound) -> None:
        """Takes the round that has just ended in place of the one before, and starts to write it if the newest
        checkpoint would be too old after another round, or if the last try failed. Returns at once."""
        self._collect(wait=False)
        now_s = self._clock()
        round_s, self._offered_s = now_s - self._offered_s, now_s
        # The next round changes objects of the node's part; the learner's part is valid until `before_update`.
        self._unsaved = replace(finished, node=copy.deepcopy(finished.node))
        if self._writing is None and now_s + round_s + self._write_s - self._saved_as_of_s >= self._every_s:
            self._begin()

    def before_update(self) -> None:
        """Waits for the checkpoint being written: afterwards the weights are no longer those of the last round."""
        self._collect(wait=True)
        self._unsaved = None

    def close(self) -> None:
        """Saves the last finished round, unless its weights have changed since. Raises CheckpointError: it cannot be
        written; earlier checkpoints are not changed."""
        self._collect(wait=True)
        if self._unsaved is not None:
            self._begin()
            self._collect(wait=True, last=True)
        self._thread.shutdown()

    @property
    def is_behind(self) -> bool:
        """True if `close` has something to write or to wait for."""
        return self._unsaved is not None or self._writing is not None

    def _begin(self) -> None:
        assert self._unsaved is not None
        with self._device_lock or nullcontext():  # where a KeyboardInterrupt may come
            writing = self._thread.submit(self._write, self._unsaved)
            self._writing, self._unsaved = (self._unsaved, self._clock(), writing), None
            if self._device_lock is not None:
                writing.exception()  # waits; `_collect` tells of it

    def _write(self, one: FinishedRound) -> tuple[Path, float]:
        began_s = self._clock()
        path = self._store.save(one.round, one.policy_version, one.learner, one.node)
        return path, self._clock() - began_s

    def _collect(self, *, wait: bool, last: bool = False) -> None:
        """Takes the result of a finished write. A failure is logged and its round kept, or with `last` it is raised."""
        if self._writing is None or not (wait or self._writing[2].done()):
            return
        finished, began_s, writing = self._writing
        asked_s = self._clock()
        try:
            path, self._write_s = writing.result()
        except CheckpointError as error:
            self._writing = None
            if last:
                raise
            self._unsaved = self._unsaved or finished
            logger.warning("%s. Training is not affected: the node tries again after each round", error)
            return
        self._writing, self._saved_as_of_s = None, began_s
        waited_s = self._clock() - asked_s
        logger.info("round %d saved in %.1f s, of which %.1f s waited", finished.round, self._write_s, waited_s)
        self._saved(finished.round, path)
