"""The state folder of a node: one node at a time, one model and method for good."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from codezero.errors import StateError

_SETTINGS = "settings.json"
_STARTED = "started_with.json"


@contextmanager
def locked_state(folder: Path) -> Iterator[Path]:
    """Holds a node's folder for this process, making it if needed.

    Raises StateError: another live node holds it, or it cannot be made or written.
    """
    with locked(folder, what="state folder", holder="node", setting="state_dir"):
        yield folder


@contextmanager
def locked(folder: Path, *, what: str, holder: str, setting: str) -> Iterator[int]:
    """Holds a folder, making it if needed; gives a file descriptor, and a process that inherits it holds it too.

    The lock goes with the last such process, however it ends. Raises StateError: it is held, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / f"{holder}.lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot use {what} {folder}: {error.strerror}; give another {setting}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise StateError(
                f"{what} {folder} is in use by the {holder} with process id {file.read().strip() or 'unknown'}: stop "
                f"that {holder}, or give this one another {setting}"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield file.fileno()


def holder(folder: Path, name: str = "node") -> int | None:
    """Process id of the program that holds a folder under this name; None: nobody does.

    To try a lock is to hold it for a moment, in which a program that starts would be refused, so a process id that
    nobody has is answer enough; not in a folder mounted read-only, which is another container's, with process ids of
    its own. Raises StateError: the folder cannot be read.
    """
    try:
        with (folder / f"{name}.lock").open(encoding="utf-8") as file:
            text = file.read()
            if not re.fullmatch("[0-9]{1,9}", text):
                return None
            is_of_another = os.fstatvfs(file.fileno()).f_flag & os.ST_RDONLY
            if not is_of_another and not psutil.pid_exists(int(text)):
                return None
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read {folder}/{name}.lock: {error.strerror}") from error
    return None


def bound_settings(folder: Path) -> dict[str, Any]:
    """The settings this folder's state was made with; empty for a new folder. Raises StateError: unreadable."""
    path = folder / _SETTINGS
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StateError(f"cannot read {path}: {error}; give another state_dir") from error
    return settings


def check_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Raises StateError: the folder's state was made with another value of one of the settings."""
    bound = bound_settings(folder)
    for key, value in settings.items():
        if key in bound and bound[key] != value:
            raise StateError(
                f"state folder {folder} was made with {key}={bound[key]}, not {value}: set {key}={bound[key]}, or give "
                "another state_dir for a new start"
            )


def note_start(folder: Path, settings: Sequence[str]) -> None:
    """Notes what the node is started with (`settings_of`), for who looks into it later. Only the owner may read
    it, since the address of a chain's RPC can have a key in it. Raises StateError: it cannot be written."""
    path = folder / _STARTED
    temporary = path.with_suffix(".tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(list(settings), file, indent=1)
        os.replace(temporary, path)
    except OSError as error:
        raise StateError(f"cannot write to state folder {folder}: {error.strerror}; give another state_dir") from error


def noted_start(folder: Path) -> list[str]:
    """The settings that a node of this folder was started with last; empty where that is not known."""
    try:
        found = json.loads((folder / _STARTED).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [setting for setting in found if isinstance(setting, str)] if isinstance(found, list) else []


def bind_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Notes settings that the folder's state depends on. Raises StateError: it cannot be written."""
    bound = bound_settings(folder)
    if {**bound, **settings} == bound:
        return
    temporary = folder / (_SETTINGS + ".tmp")
    try:
        temporary.write_text(json.dumps({**bound, **settings}, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, folder / _SETTINGS)
    except OSError as error:
        raise StateError(f"cannot write to state folder {folder}: {error.strerror}; give another state_dir") from error
