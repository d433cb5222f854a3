"""Starts the p2p daemon with the least rights that it works with.

The daemon is a binary in hivemind's wheel, built with a version of Go that gets no fixes any more, and it is open to
all nodes. This process gives up what the daemon does not need, and then executes it with the same process id.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import codezero
from codezero.runtime import kernel

MEMORY_BYTES = 2 << 30
"""Limit of private writable memory. Go reserves far more address space than it uses (0.7 GB for 0.04 GB in use), so
that is not limited."""
FILES = 4_096
"""The most open files; each connection is one."""
_KEPT = ("GOLOG_LOG_LEVEL", "GOLOG_LOG_FMT")
"""The variables that the daemon reads. It gets no others, since the node's environment has tokens and passphrases."""
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
    """Returns the command line that starts a program through `become`."""
    package = Path(codezero.__file__).parent.parent
    return [sys.executable, "-I", "-S", "-B", "-c", _START, str(package), str(os.getpid()), program, *arguments]


def become(parent: str, program: str, *arguments: str) -> None:
    """Limits this process and executes the program in it, unless the process `parent` that started it has ended."""
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
