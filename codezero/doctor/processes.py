"""The check for processes of this user that dead nodes have left behind, and for running nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, info, ok, warning
from codezero.runtime.amounts import GIB

_STRAYS = (
    ("p2pd", "p2p daemon", "it keeps a port, and answers under a key that a new node needs"),
    ("codezero.evaluate.backends.llama_cpp_server", "llama.cpp judge", "it keeps memory"),
    ("codezero.launch.prepare", "preparation of models", "it keeps memory and a lock"),
    ("next-server", "sign-in app", "it keeps the sign-in app's port"),
)
"""For each program that a dead node can leave behind: a word of its command line, its name, and the harm it does."""
_REAPERS = ("init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "conmon")
"""Names of processes that become the parent of orphaned ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running process of this user."""

    pid: int
    command: tuple[str, ...]
    parent_pid: int | None
    parent_command: tuple[str, ...]
    """The parent's command line; empty without a parent."""
    rss_bytes: int


def check(case: ExaminedNode) -> Iterator[Finding]:
    found = list(own_processes())
    strays = [(program, *stray) for program in found for stray in _STRAYS if _is_stray(program, stray[0])]
    for program, _, what, means in strays:
        left = f"a {what} whose node has ended: process {program.pid} ({' '.join(program.command)[:120]})"
        yield warning("processes", left, means, f"kill {program.pid}")
    nodes = [program for program in found if is_node(program.command)]
    if nodes:
        size = sum(program.rss_bytes for program in nodes) / GIB
        run = "1 node of yours runs" if len(nodes) == 1 else f"{len(nodes)} nodes of yours run"
        pids = ", ".join(str(program.pid) for program in nodes[:10])
        yield info("processes", f"{run} here, with {size:.1f} GiB: {pids}")
    elif not strays:
        yield ok("processes", "nothing of an earlier node is left")


def own_processes() -> Iterator[Running]:
    me = os.getuid()
    for process in psutil.process_iter():
        try:
            if process.uids().real != me:
                continue
            parent = process.parent()
            yield Running(
                pid=process.pid,
                command=tuple(process.cmdline()),
                parent_pid=None if parent is None else parent.pid,
                parent_command=() if parent is None else tuple(parent.cmdline()),
                rss_bytes=process.memory_info().rss,
            )
        except (psutil.Error, OSError):  # it has ended meanwhile, or may not be examined
            continue


def is_node(command: tuple[str, ...]) -> bool:
    """Returns whether a command line is `codezero run`, `propose` or `verify`, as a script or by `python -m`."""
    for number, word in enumerate(command[:-1]):
        named = word.rpartition("/")[2] == "codezero" or (word == "codezero" and command[number - 1] == "-m")
        if named and command[number + 1] in ("run", "propose", "verify"):
            return True
    return False


def _is_stray(program: Running, word: str) -> bool:
    """Returns whether a dead node left the program behind. Only the start of its command line counts: later arguments
    may be, for example, the name of a file in an editor."""
    start = program.command[:4]
    return any(part.rpartition("/")[2] == word or part.split(" ")[0] == word for part in start) and _is_orphan(program)


def _is_orphan(program: Running) -> bool:
    """Returns whether a program's parent has ended. Process 1 adopts orphans, but in a container it may be a node."""
    name = (program.parent_command or ("",))[0].rpartition("/")[2]
    words = " ".join(program.parent_command)
    is_first = program.parent_pid == 1 and not any(own in words for own in ("codezero", "npm", "node", "next"))
    return program.parent_pid is None or name in _REAPERS or is_first
