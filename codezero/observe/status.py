"""The current state of a node, as one small JSON file in its state folder for views, commands and the dashboard.

Training does not need the file, so a failed write never stops a node: it is logged once, as a warning.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

import msgspec
import psutil

from codezero import __version__
from codezero.identity.names import animal_name
from codezero.runtime.files import encodable, replace_file, stored
from codezero.runtime.worker import Worker
from codezero.types import SOLO_PEER_ID

logger = logging.getLogger(__name__)

WRITE_S = 1.0
"""Seconds between two writes while something changes."""
BEAT_S = 10.0
"""Seconds between two writes while nothing changes, which show that the node runs, and its memory."""
SILENT_S = 6 * BEAT_S
"""Seconds without a write after which a running node has a problem."""
EARLY = 0.1
"""Share of a stage that has to be done before its pace is used to estimate the rest."""
REMEMBERED = 5
"""Number of latest rounds whose seconds give the usual duration of a stage."""
STOPPED = "stopped"
"""`Status.ended` of a node that was asked to end, or had played its rounds."""
WAITING, PROBING, SAVING, STARTING = "wait", "probe", "save", "start"
"""Stages outside a round: waiting for the swarm's next round, measuring the policy, saving a checkpoint, and starting
the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The current state of a node; unknown values are empty, 0 or None."""

    role: str
    """The node's role: solver, proposer or verifier."""
    version: str
    """The version of codezero."""
    pid: int
    log_dir: str
    """Path of the log folder relative to the state folder, so that both can be moved or mounted elsewhere together."""
    started_at_s: float
    """Unix time in seconds, like all fields that end in `_at_s`."""
    updated_at_s: float
    peer_id: str = ""
    model: str = ""
    method: str = ""
    """Training method, full or lora; empty for a node that does not learn."""
    group_size: int = 0
    """G, the number of rollouts in a group."""
    round: int | None = None
    """Number of the current round, or of the batch in other roles; None before the first."""
    stage: str = STARTING
    stage_began_at_s: float = 0.0
    done: int = 0
    total: int = 0
    """Progress of the stage: `done` of `total` in the stage's own units; total is 0 if unknown."""
    usual_s: Mapping[str, float] = field(default_factory=dict)
    """Median wall seconds of each stage over the latest rounds, in the order of the stages."""
    policy_version: int | None = None
    network: str = ""
    peer_tasks: str = ""
    """The tasks of peers that the node trains on, and how many are listed for that; empty where it trains alone."""
    ledger: str = ""
    """The reason why rewards do not reach the ledger; empty without a problem."""
    pushed: str = ""
    """The last push to the hub; empty before the first."""
    push_trouble: str = ""
    """The reason why the last push failed, with text of the hub; empty without a problem."""
    rss_bytes: int = 0
    planned_bytes: int = 0
    """The process's memory by plan, in bytes; 0 if not known, as on an NVIDIA GPU, where the GPU's own is planned."""
    ended: str = ""
    """Description of how the node ended, or is about to; empty while it runs, and after a kill."""

    @property
    def animal(self) -> str:
        """The node's animal name; empty without a peer id of its own."""
        return animal_name(self.peer_id) if self.peer_id not in ("", SOLO_PEER_ID) else ""

    def left_s(self, now_s: float) -> float | None:
        """Returns the estimated seconds until the end of the round, from the usual duration of its stages and the
        progress of the current one; None if not known yet."""
        if self.stage not in self.usual_s:
            return None
        spent_s = max(0.0, now_s - self.stage_began_at_s)
        if self.done > EARLY * self.total:
            here_s = spent_s / self.done * (self.total - self.done)
        else:
            here_s = max(0.0, self.usual_s[self.stage] - spent_s)
        stages = list(self.usual_s)
        return here_s + sum(self.usual_s[name] for name in stages[stages.index(self.stage) + 1 :])


def new_status(role: str, folder: Path, log_dir: Path) -> Status:
    """Returns the status of a node that starts now, in this process and with this state folder."""
    now_s = time.time()
    return Status(
        role=role,
        version=__version__,
        pid=os.getpid(),
        log_dir=os.path.relpath(log_dir.resolve(), folder.resolve()),
        started_at_s=now_s,
        updated_at_s=now_s,
        stage_began_at_s=now_s,
    )


class StatusFile:
    """Writer of a running node's `status.json`; a context manager, which records at the end how the node ended."""

    def __init__(self, folder: Path, first: Status) -> None:
        self._path = folder / "status.json"
        self._status = first
        self._recent: deque[Mapping[str, float]] = deque(maxlen=REMEMBERED)
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._warned = False
        self._worker = Worker("status", self._work)

    def __enter__(self) -> StatusFile:
        self._write()
        self._worker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        ended = STOPPED if error is None or isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        self._worker.stop(WRITE_S + 1)
        self.update(ended=ended)
        self._write()

    @property
    def status(self) -> Status:
        """The status now."""
        return self._status

    def update(self, **changes: Any) -> None:
        """Sets some fields of the status."""
        with self._lock:
            self._status = replace(self._status, **changes)
        self._worker.wake()

    def stage(self, name: str) -> None:
        """Records the start of a stage."""
        self.update(stage=name, stage_began_at_s=time.time(), done=0, total=0)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Records the progress of the current stage, whatever its name, as a `ports.Progress`. Where it counts anew, as
        in a second update, the stage begins anew, so that the pace is that of this count."""
        before = self._status
        if before.total and (done < before.done or total != before.total):
            self.stage(before.stage)
        self.update(done=done, total=total)

    def took(self, seconds: Mapping[str, float]) -> None:
        """Records the wall seconds of each stage of a finished round."""
        self._recent.append(seconds)
        usual_s = {name: median(one.get(name, 0.0) for one in self._recent) for name in seconds}
        self.update(usual_s=usual_s)

    def _work(self) -> float:
        self._write()
        self._worker.pause(WRITE_S)
        return BEAT_S

    def _write(self) -> None:
        with self._writing:  # at the end the worker may be at it yet, with what was before
            with self._lock:
                rss_bytes = psutil.Process().memory_info().rss
                self._status = status = replace(self._status, updated_at_s=time.time(), rss_bytes=rss_bytes)
            fields = asdict(status).items()
            shown = {name: encodable(value) if isinstance(value, str) else value for name, value in fields}
            try:
                replace_file(self._path, msgspec.json.encode(shown) + b"\n")
            except OSError as error:
                self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            logger.warning(
                "cannot write %s: %s; the node continues, but codezero status and the dashboard will not see what it "
                "does: free space or make the folder writable",
                self._path,
                error.strerror,
            )
        self._warned = True


def read_status(folder: Path) -> Status | None:
    """Returns the last status that a node wrote to this state folder; None if there is none, or an unreadable one."""
    return stored(folder / "status.json", Status)
