"""Programs of this user that dead nodes have left behind, and the nodes that run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, info, ok, warning

_STRAYS = (
    ("p2pd", "p2p daemon", "it keeps a port, and answers under a key that a new node needs"),
    ("codezero.evaluate.backends.llama_cpp_server", "llama.cpp judge", "it keeps memory"),
    ("codezero.launch.prepare", "preparation of models", "it keeps memory and a lock"),
    ("next-server", "sign-in app", "it keeps the sign-in app's port"),
)
"""A word of the command line, what that program is, and what it is in the way of."""
GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    pid: int
    command: tuple[str, ...]
    parent_command: tuple[str, ...] | None
    """None: its parent has ended."""
    rss_bytes: int


def check(case: Case) -> Iterator[Finding]:
    found = list(own_processes())
    strays = [(program, *stray) for program in found for stray in _STRAYS if _is_stray(program, stray[0])]
    for program, _, what, means in strays:
        yield warning(
            "processes",
            f"a {what} whose node has ended: process {program.pid} ({' '.join(program.command)[:120]})",
            means,
            f"kill {program.pid}",
        )
    nodes = [program for program in found if is_node(program.command)]
    if nodes:
        size = sum(program.rss_bytes for program in nodes) / GIB
        yield info(
            "processes",
            f"{len(nodes)} node{'s' * (len(nodes) != 1)} of yours run here, with {size:.1f} GiB: "
            + ", ".join(str(program.pid) for program in nodes[:10]),
        )
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
                parent_command=None if parent is None or parent.pid == 1 else tuple(parent.cmdline()),
                rss_bytes=process.memory_info().rss,
            )
        except (psutil.Error, OSError):  # it has ended meanwhile, or is not ours to look at
            continue


def is_node(command: tuple[str, ...]) -> bool:
    """`codezero run` and `propose`, as a script or as `python -m codezero`."""
    for number, word in enumerate(command[:-1]):
        named = word.rpartition("/")[2] == "codezero" or (word == "codezero" and command[number - 1] == "-m")
        if named and command[number + 1] in ("run", "propose"):
            return True
    return False


def _is_stray(program: Running, word: str) -> bool:
    """By the program's own name, not by a word somewhere in its arguments, which may be an editor's. A parent that is
    no Python and no Node.js is what took it over: systemd of the user, a container's first process."""
    start = program.command[:4]
    if not any(part.rpartition("/")[2] == word or part.split(" ")[0] == word for part in start):
        return False
    parent = program.parent_command
    if parent is None:
        return True
    return not any(name in " ".join(parent).lower() for name in ("python", "codezero", "node", "npm", "pytest"))
