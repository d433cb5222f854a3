"""Weights & Biases: a child process holds the run, so that nothing of that package, its service, its threads, its hooks
at exit and its waiting for a network, is in the node's own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from codezero.observe.trackers.lane import values_of
from codezero.observe.trackers.metrics import Metric

INIT_S = 60.0
"""For a run to begin; offline it takes two seconds."""
FINISH_S = 10.0
"""For a run to end, in the child, which ends then whatever happens."""
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
"""Of the environment the child gets these, what begins with WANDB_, and proxies; no other service's token."""
KEY_ENV = "WANDB_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class WandbRun:
    """What a run is begun with."""

    mode: str
    """`offline` or `online`."""
    folder: str
    """In which the package makes its folder `wandb`."""
    project: str
    entity: str
    name: str
    run_id: str
    """The same id after a restart is the same run."""
    config: Mapping[str, object] = field(default_factory=dict)
    """Settings that are shown beside the curves."""
    init_s: float = INIT_S
    finish_s: float = FINISH_S


class WandB:
    """lane.Tracker."""

    name = "tracking.wandb"

    def __init__(self, run: WandbRun, environment: Mapping[str, str] = os.environ) -> None:
        self._run, self._environment = run, environment
        self._process: subprocess.Popen[str] | None = None

    def open(self) -> None:
        """Raises OSError or RuntimeError: the run does not begin, with the package's own words."""
        Path(self._run.folder).mkdir(parents=True, exist_ok=True)
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "codezero.observe.trackers.wandb_run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(self._environment),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the node, which ends the run in order
        )
        assert process.stdout is not None
        too_late = threading.Timer(self._run.init_s, process.kill)
        too_late.daemon = True
        too_late.start()
        try:
            self._send(asdict(self._run))
            answer = process.stdout.readline().strip()
        finally:
            too_late.cancel()
        if answer != "ready":
            code = process.wait()
            late = code == -signal.SIGKILL
            how = (
                f"the run did not begin within {self._run.init_s:g} s"
                if late
                else f"its process ended with code {code}"
            )
            instead = "; offline needs neither account nor network" if self._run.mode == "online" else ""
            raise RuntimeError(f"{self._without_key(answer) or how}{instead}")

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        """Raises OSError: the child has ended."""
        self._send({"step": step, "values": values_of(metrics)})

    def close(self) -> None:
        """Ends the run and the child.

        Raises RuntimeError: the run did not end in time; subprocess.TimeoutExpired: nor did the child, which is killed.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(self._run.finish_s + 1.0)  # it gives up a moment earlier, and its code says so
        finally:
            self._process.kill()
        if code:
            raise RuntimeError(f"the run did not end within {self._run.finish_s:g} s")

    def _send(self, message: Mapping[str, object]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _without_key(self, text: str) -> str:
        key = self._environment.get(KEY_ENV, "")
        return text.replace(key, "***") if key else text


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What of the node's environment the child gets."""
    return {
        name: value
        for name, value in environment.items()
        if name in PASSED_ON or name.startswith("WANDB_") or name.lower().endswith("_proxy")
    }
