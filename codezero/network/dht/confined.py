"""Starts the p2p daemon with the least rights that it works with.

The daemon is a binary of hivemind's wheel, built with a Go that gets no fixes any more, and it talks to everybody. This
process gives up what the daemon does not need, and then becomes it, keeping its process id.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import codezero
from codezero.runtime import kernel

MEMORY_BYTES = 2 << 30
"""Private memory that may be written to. The address space is no measure for Go, which reserves far more than it uses
(0.7 GB where 0.04 are in use)."""
FILES = 4_096
"""A connection takes one."""
_KEPT = ("GOLOG_LOG_LEVEL", "GOLOG_LOG_FMT")
"""All that the daemon reads from its environment; the node's has tokens and passphrases in it."""
_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),  # it writes no files
    (resource.RLIMIT_DATA, MEMORY_BYTES),
    (resource.RLIMIT_NOFILE, FILES),
)
_START = (
    "import sys; sys.path.append(sys.argv[1]); from codezero.network.dht.confined import become; become(*sys.argv[2:])"
)


def command(program: str, *arguments: str) -> list[str]:
    """The command line that starts a program in this way."""
    package = Path(codezero.__file__).parent.parent
    return [sys.executable, "-I", "-S", "-B", "-c", _START, str(package), str(os.getpid()), program, *arguments]


def become(parent: str, program: str, *arguments: str) -> None:
    """Exchanges this process for the program, unless `parent`, the process id of who started it, has ended."""
    for kind, most in _LIMITS:
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    if kernel.IS_LINUX:
        kernel.forbid_new_privileges()
        kernel.die_with_parent()
    if os.getppid() != int(parent):  # it ended before the line above
        sys.exit(1)
    os.execve(program, [program, *arguments], {name: os.environ[name] for name in _KEPT if name in os.environ})
