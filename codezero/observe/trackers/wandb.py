"""Weights & Biases, run in a child process, so that the package's service, threads, exit hooks and waits for the
network are not in the node's process."""

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

from codezero.observe.trackers.metrics import Metric

INIT_S = 60.0
"""Seconds for a run to start; offline it takes two."""
FINISH_S = 10.0
"""Seconds for a run to end; the child process then exits in any case."""
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
"""Environment variables for the child, besides WANDB_* and proxies: it gets no token of another service."""
KEY_ENV = "WANDB_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class WandbRun:
    """The parameters of a run."""

    mode: str
    """Mode of the run: `offline` or `online`."""
    folder: str
    """Folder in which the package makes its folder `wandb`."""
    project: str
    entity: str
    name: str
    run_id: str
    """Id of the run; a restart with the same id continues the run."""
    config: Mapping[str, object] = field(default_factory=dict)
    """Settings that are shown beside the curves."""
    init_s: float = INIT_S
    finish_s: float = FINISH_S


class WandB:
    """Implements `threads.Tracker` by sending lines of JSON to the child process."""

    name = "tracking.wandb"

    def __init__(self, run: WandbRun, environment: Mapping[str, str] = os.environ) -> None:
        self._run, self._environment = run, environment
        self._process: subprocess.Popen[str] | None = None

    def open(self) -> None:
        """Starts the child and the run. Raises OSError or RuntimeError, with the package's message, if the run fails to
        start."""
        Path(self._run.folder).mkdir(parents=True, exist_ok=True)
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "codezero.observe.trackers.wandb_run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(self._environment),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the node, which ends the run properly
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
        """Sends the numbers to the child. Raises OSError if the child has ended."""
        self._send({"step": step, "values": {metric.name: metric.value for metric in metrics}})

    def close(self) -> None:
        """Ends the run and the child.

        Raises RuntimeError if the run did not end in time, subprocess.TimeoutExpired if the child had to be killed.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(self._run.finish_s + 1.0)  # the child exits earlier, with its result
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
    """Returns the part of the node's environment that the child gets."""
    return {
        name: value
        for name, value in environment.items()
        if name in PASSED_ON or name.startswith("WANDB_") or name.lower().endswith("_proxy")
    }
