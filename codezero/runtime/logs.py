"""Set-up of logging: all records and console lines go to a file, codezero's warnings also to the console. Messages of
libraries below warnings are dropped."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path

from codezero import __version__
from codezero.errors import CodezeroError, StateError, told_as
from codezero.runtime.amounts import utc
from codezero.runtime.console import Console, printable

MAX_LOG_BYTES = 20_000_000
QUIET_LIBRARIES = (
    "transformers",
    "datasets",
    "huggingface_hub",
    "filelock",
    "urllib3",
    "httpx2",
    "httpcore2",
    "fsspec",
    "peft",
)


class _OneLine(logging.Formatter):
    """Formatter of one line per record, with the lines of an exception indented below: untrusted text in a message
    cannot start a line."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return utc(record.created, "milliseconds")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return "\n  ".join(map(printable, text.split("\n"))) if record.exc_info else printable(text)


class _Json(logging.Formatter):
    """Formatter of one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        found = {
            "time": utc(record.created, "milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found)


class _ConsoleHandler(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console
        self.setFormatter(_OneLine("%(levelname)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "is_shown", False):
            return
        self._console.show(self.format(record).splitlines()[0], warns=True)


class _File(RotatingFileHandler):
    """Log file that reports a full disk once on the console, not by a traceback per lost record."""

    def __init__(self, path: Path, console: Console) -> None:
        super().__init__(path, maxBytes=MAX_LOG_BYTES, backupCount=3, encoding="utf-8")
        self._console, self._told = console, False

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told:
            self._told = True
            self._console.show(
                f"WARNING: cannot write {self.baseFilename} ({error.strerror}): free space; what happens until then is "
                "not in the log"
            )


def set_up(
    log_dir: Path,
    level: str,
    console: Console,
    name: str = "swarm.log",
    as_json: bool = False,
) -> None:
    """Sends this process's logging to the file `name`. Raises StateError if the log folder cannot be written."""
    with told_as(StateError, f"cannot write logs to {log_dir}", "give another tracking.log_dir"):
        log_dir.mkdir(parents=True, exist_ok=True)
        file = _File(log_dir / name, console)
    text = _OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s")
    file.setFormatter(_Json() if as_json else text)
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
    root.addHandler(file)
    logging.addLevelName(logging.WARNING, "WARNING")  # hivemind calls it WARN from its import on
    root.setLevel(logging.WARNING)
    own = logging.getLogger("codezero")
    own.setLevel(level)
    own.addHandler(_ConsoleHandler(console))
    own.info("codezero %s starts as process %d", __version__, os.getpid())
    console.on_line = partial(logging.getLogger("codezero.console").info, "%s")
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    logging.captureWarnings(True)


def log_end(error: BaseException) -> None:
    """Logs why the process ends, if logging is set up. The caller shows it on the terminal."""
    own = logging.getLogger("codezero")
    if own.handlers:
        told = isinstance(error, CodezeroError)
        own.error("ended: %s", error, exc_info=None if told else error, extra={"is_shown": True})


def quiet_libraries() -> None:
    """Turns off progress bars and advice of libraries; must run before they are imported."""
    warnings.simplefilter("ignore", FutureWarning)
    for name, value in {
        "TRANSFORMERS_VERBOSITY": "error",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HIVEMIND_LOGLEVEL": "ERROR",
        # Spinning OpenMP workers slow every process down where several share few cores (measured up to 8 times).
        "OMP_WAIT_POLICY": "passive",
    }.items():
        os.environ.setdefault(name, value)
