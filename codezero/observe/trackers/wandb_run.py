"""The child process of trackers/wandb.py: starts a run, logs lines of JSON from standard input until its end.

Prints one line: `ready`, or the reason why there is no run.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

from codezero.observe.trackers.threads import not_installed


def main() -> None:
    begin = json.loads(sys.stdin.readline())
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w") as nothing:  # output of the package and its service is dropped
        os.dup2(nothing.fileno(), 1)
    waiting: queue.Queue[dict[str, Any] | None] = queue.Queue()
    worker = threading.Thread(target=_follow, args=(begin, waiting, told), daemon=True)
    worker.start()
    for line in sys.stdin:
        waiting.put(json.loads(line))
    waiting.put(None)
    worker.join(begin["finish_s"])
    # It skips the package's waits at exit. A service that still runs ends with this process.
    os._exit(int(worker.is_alive()))


def _follow(begin: dict[str, Any], waiting: queue.Queue[dict[str, Any] | None], told: Any) -> None:
    try:
        run = _begin(begin)
        print("ready", file=told, flush=True)
        while (message := waiting.get()) is not None:
            run.log(message["values"], step=message["step"])
        run.finish()
        _end_service()
    except BaseException as error:  # the boundary of the process: any error is reported to the node
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, ModuleNotFoundError):
            text = not_installed(error)
        print(text, file=told, flush=True)
        os._exit(1)


def _end_service() -> None:
    """Waits until the package's service has written the run's file: `finish` does not, and the service ends unfinished
    if this process ends before it."""
    import wandb

    wandb.teardown()


def _begin(begin: dict[str, Any]) -> Any:
    folder = Path(begin["folder"])
    # Its log files go beside the runs, not to the home folder; no error reports to the vendor.
    os.environ.setdefault("WANDB_CACHE_DIR", str(folder / "wandb" / "cache"))
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    settings = wandb.Settings(
        console="off",
        disable_code=True,
        disable_git=True,
        disable_job_creation=True,
        init_timeout=begin["init_s"],
        host="codezero",  # in place of the name of the machine
        quiet=True,
        save_code=False,
        silent=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    return wandb.init(
        mode=begin["mode"],
        dir=str(folder),
        project=begin["project"],
        entity=begin["entity"] or None,
        name=begin["name"],
        id=begin["run_id"],
        resume="allow",
        config=begin["config"],
        settings=settings,
    )


if __name__ == "__main__":
    main()
