"""The state folder of a node, for one node at a time and always the same model and method."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from codezero.errors import StateError, told_as
from codezero.runtime.files import replace_file, try_lock

_SETTINGS = "settings.json"
_STARTED = "started_with.json"
_SECRET = "secret"


@contextmanager
def locked_state(folder: Path) -> Iterator[Path]:
    """Locks a node's state folder for this process, and creates it if needed.

    Raises StateError if another live node has locked it, or if it cannot be created or written.
    """
    with locked(folder, what="state folder", holder="node", setting="state_dir"):
        yield folder


@contextmanager
def locked(folder: Path, *, what: str, holder: str, setting: str) -> Iterator[int]:
    """Locks a folder, and creates it if needed. Yields the lock's file descriptor; a process that inherits it shares
    the lock, which ends with the last such process. Raises StateError if the folder is locked or cannot be written.
    """
    says, do = f"cannot use {what} {folder}", f"give another {setting}"
    with told_as(StateError, says, do):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / f"{holder}.lock").open("a+b", buffering=0)  # closing would try what has failed again
    with file:
        with told_as(StateError, says, do):
            if not try_lock(file):
                file.seek(0)
                noted = file.read().decode(errors="replace").strip()
                raise StateError(
                    f"{what} {folder} is in use by the {holder} with process id {noted or 'unknown'}: stop "
                    f"that {holder}, or give this one another {setting}"
                )
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield file.fileno()


def holder(folder: Path, name: str = "node") -> int | None:
    """Returns the id of the process that has locked a folder under this name; None if no process has.

    Trying the lock holds it for a moment, in which a starting program would be refused, so it is tried only if a
    process with the noted id exists. A folder mounted read-only is another container's, which has process ids of its
    own: there the lock is always tried. Raises StateError if the folder cannot be read.
    """
    try:
        with (folder / f"{name}.lock").open(encoding="utf-8") as file:
            text = file.read()
            if not re.fullmatch("[0-9]{1,9}", text):
                return None
            is_of_another = os.fstatvfs(file.fileno()).f_flag & os.ST_RDONLY
            if not is_of_another and not psutil.pid_exists(int(text)):
                return None
            if not try_lock(file, fcntl.LOCK_SH):
                return int(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read {folder}/{name}.lock: {error.strerror}") from error
    return None


def bound_settings(folder: Path) -> dict[str, Any]:
    """Returns the settings of this folder's state; empty for a new folder. Raises StateError if they cannot be read."""
    path = folder / _SETTINGS
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StateError(f"cannot read {path}: {error}; give another state_dir") from error
    return settings


def best_round(folder: Path) -> int | None:
    """Returns the round of the best checkpoint of the folder's node; None if it has none."""
    try:
        return int(json.loads((folder / "checkpoints" / "best" / "manifest.json").read_bytes())["round"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Raises StateError if the folder's state was made with another value of one of the settings."""
    bound = bound_settings(folder)
    for key, value in settings.items():
        if key in bound and bound[key] != value:
            raise StateError(
                f"state folder {folder} was made with {key}={bound[key]}, not {value}: set {key}={bound[key]}, or give "
                "another state_dir for a new start"
            )


def secret_of(folder: Path) -> bytes:
    """Returns random bytes that are the same at each start of the folder's node, and that only its owner can read.
    Raises StateError if they cannot be read or written."""
    path = folder / _SECRET
    with told_as(StateError, f"cannot use {path}", "give another state_dir"):
        if not path.exists():
            replace_file(path, secrets.token_bytes(16), private=True, sync=True)
        return path.read_bytes()


def note_start(folder: Path, settings: Sequence[str]) -> None:
    """Writes the settings of the node's start (`settings_of`) to the folder. Only the owner can read the file, since
    the URL of a chain's RPC may have a key. Raises StateError if it cannot be written."""
    with told_as(StateError, f"cannot write to state folder {folder}", "give another state_dir"):
        replace_file(folder / _STARTED, json.dumps(list(settings), indent=1), private=True)


def noted_start(folder: Path) -> list[str]:
    """Returns the settings of the last start of a node in this folder; empty if unknown."""
    try:
        found = json.loads((folder / _STARTED).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [setting for setting in found if isinstance(setting, str)] if isinstance(found, list) else []


def bind_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Stores settings on which the folder's state depends. Raises StateError if they cannot be written."""
    bound = bound_settings(folder)
    if {**bound, **settings} == bound:
        return
    with told_as(StateError, f"cannot write to state folder {folder}", "give another state_dir"):
        replace_file(folder / _SETTINGS, json.dumps({**bound, **settings}, indent=2) + "\n", sync=True)
