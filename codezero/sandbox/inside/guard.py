"""What stands in where the kernel's namespaces are not permitted: an audit hook in the solution's own process.

It cannot be taken off again and stops ordinary code. Code that corrupts its own interpreter gets past it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_FORBIDDEN = (
    *("socket.", "ctypes.", "subprocess.", "pty.", "syslog.", "shutil.", "signal.pthread_kill"),
    *("os.kill", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.ch", "os.link", "os.symlink"),
)
_ON_PATHS = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")
_SYSTEM = ("/usr", "/lib", "/lib64", "/dev/null", "/dev/urandom")


def install(own_folder: str) -> None:
    """Forbids, from here on: sockets, signals to others, starting programs, and files but Python's own and those of
    `own_folder`."""
    own = os.path.realpath(own_folder)
    python = [os.path.realpath(path) for path in (sys.base_prefix, os.path.dirname(os.__file__))]
    allowed = tuple(path + "/" for path in (own, *python, *_SYSTEM))
    realpath, fspath, error = os.path.realpath, os.fspath, PermissionError

    def hook(event: str, arguments: Sequence[object]) -> None:
        if event.startswith(_FORBIDDEN):
            raise error(f"{event} is not allowed in the sandbox")
        if event in _ON_PATHS and arguments and not isinstance(arguments[0], int):
            path = arguments[0]
            text = os.fsdecode(fspath(path)) if isinstance(path, (str, bytes, os.PathLike)) else "."
            reads = event in ("os.listdir", "os.scandir") or (event == "open" and not _writes(arguments))
            if not (realpath(text) + "/").startswith(allowed if reads else own + "/"):
                raise error(f"{event} outside the sandbox's folder")

    sys.addaudithook(hook)


def _writes(arguments: Sequence[object]) -> bool:
    """Whether the `open` event's arguments (path, mode, flags) ask for more than reading."""
    flags = arguments[2] if len(arguments) > 2 else 0
    return isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) != 0
