"""TensorBoard: writes rounds to an event file with tensorboard's writer, which needs neither torch nor TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codezero.observe.trackers.metrics import Metric


class TensorBoard:
    """Implements `threads.Tracker`. Each start of the node writes a new file; TensorBoard shows all as one run."""

    name = "tracking.tensorboard"

    def __init__(self, folder: Path, first_step: int) -> None:
        """TensorBoard drops all steps from `first_step` on in earlier files: these rounds are repeated."""
        self._folder, self._first_step = folder, first_step
        self._writer: Any = None

    def open(self) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(self._folder))
        start = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(wall_time=time.time(), step=self._first_step, session_log=start))
        self._writer.flush()

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=metric.name, simple_value=metric.value) for metric in metrics]
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
