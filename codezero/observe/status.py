"""What a node is doing right now: one small JSON file in its state folder, for views, commands and the dashboard.

Nobody needs it for training, so nothing about it can stop a node: a write that fails is warned of once.
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
from codezero.types import SOLO_PEER_ID

logger = logging.getLogger(__name__)

WRITE_S = 1.0
"""Between two writes while something changes."""
BEAT_S = 10.0
"""Between two writes while nothing does: a reader sees that the node lives, and its memory."""
SILENT_S = 6 * BEAT_S
"""Without a write for so long, something is wrong with a running node."""
EARLY = 0.1
"""Share of a stage before which its own pace says nothing: it has just warmed up."""
REMEMBERED = 5
"""Rounds whose seconds say how long a stage usually takes."""
WAITING, PROBING, SAVING, STARTING = "wait", "probe", "save", "start"
"""Stages around those of a round: for the swarm's clock, to measure itself, for the disk, and before the first
round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A node's present. Made by a node, read by whoever shows it; unknown things are empty, 0 or None."""

    role: str
    """solver or proposer."""
    version: str
    """Of codezero."""
    pid: int
    log_dir: str
    """Seen from the state folder, so that both can be moved or mounted elsewhere together."""
    started_at_s: float
    """Unix time, as are all `_at_s`."""
    updated_at_s: float
    peer_id: str = ""
    model: str = ""
    method: str = ""
    """What is trained: full or lora; empty for what does not learn."""
    group_size: int = 0
    """G, the rollouts in a group."""
    round: int | None = None
    """The round, or batch of a proposer, that is being played; None before the first."""
    stage: str = STARTING
    stage_began_at_s: float = 0.0
    done: int = 0
    total: int = 0
    """How far the stage is, in its own units; total is 0 where that is not known."""
    usual_s: Mapping[str, float] = field(default_factory=dict)
    """Median wall seconds of each stage of late, in their order."""
    policy_version: int | None = None
    network: str = ""
    ledger: str = ""
    """What keeps rewards from the ledger; empty while nothing does."""
    pushed: str = ""
    """What the hub got last; empty before a first push, and without any."""
    push_trouble: str = ""
    """What keeps the model from the hub; empty while nothing does. Others' text in part."""
    rss_bytes: int = 0
    planned_bytes: int = 0
    """Memory that the plan counts with."""
    ended: str = ""
    """How the node ended, in words; empty while it runs, and after a kill."""

    @property
    def animal(self) -> str:
        """Its name among peers; empty for a node that has no peer id of its own."""
        return animal_name(self.peer_id) if self.peer_id not in ("", SOLO_PEER_ID) else ""

    def left_s(self, now_s: float) -> float | None:
        """Seconds until the round is over, by what stages usually take and how far this one is; None: not known yet."""
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
    """That of a node which starts in this process now, with this state folder."""
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
    """Keeps `status.json` of a running node up to date. A context manager, which notes how the node ended."""

    def __init__(self, folder: Path, first: Status) -> None:
        self._path = folder / "status.json"
        self._status = first
        self._recent: deque[Mapping[str, float]] = deque(maxlen=REMEMBERED)
        self._changed, self._stop = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)

    def __enter__(self) -> StatusFile:
        self._write()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        ended = (
            "stopped" if error is None or isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        )
        self._stop.set()
        self._changed.set()
        self._thread.join(timeout=WRITE_S + 1)
        self.update(ended=ended)
        self._write()

    @property
    def status(self) -> Status:
        """As of this moment."""
        return self._status

    def update(self, **changes: Any) -> None:
        """Notes some of the fields."""
        with self._lock:
            self._status = replace(self._status, **changes)
        self._changed.set()

    def stage(self, name: str) -> None:
        """A stage begins."""
        self.update(stage=name, stage_began_at_s=time.time(), done=0, total=0)

    def progress(self, stage: str, done: int, total: int) -> None:
        """ports.Progress: how far the running stage is, whatever it calls itself."""
        self.update(done=done, total=total)

    def took(self, seconds: Mapping[str, float]) -> None:
        """A round is over that took so many wall seconds by stage."""
        self._recent.append(seconds)
        usual_s = {name: median(one.get(name, 0.0) for one in self._recent) for name in seconds}
        self.update(usual_s=usual_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._changed.wait(BEAT_S)
            self._changed.clear()
            self._write()
            self._stop.wait(WRITE_S)

    def _write(self) -> None:
        with self._lock:
            self._status = replace(self._status, updated_at_s=time.time(), rss_bytes=psutil.Process().memory_info().rss)
            status = self._status
        temporary = self._path.with_suffix(".json.tmp")
        try:
            temporary.write_bytes(msgspec.json.encode(asdict(status)) + b"\n")
            os.replace(temporary, self._path)
        except OSError as error:
            if not self._warned:
                logger.warning(
                    "cannot write %s: %s; the node goes on, but codezero status and the dashboard will not see "
                    "what it does: free space or make the folder writable",
                    *(self._path, error.strerror),
                )
            self._warned = True


def read_status(folder: Path) -> Status | None:
    """The status that a node of this state folder noted last; None: none, or not one that can be read."""
    try:
        return msgspec.json.decode((folder / "status.json").read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError):
        return None
