"""The settings, environment and files of programs that a launcher runs side by side on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codezero.config import NodeConfig
from codezero.config.swarm_file import quoted
from codezero.launch.child import ChildProgram
from codezero.runtime import limits

PER_NODE_SETTINGS = {
    **dict.fromkeys(("state_dir", "tracking.log_dir", "swarm.identity_path"), "every node has its own in --folder"),
    "swarm.announce": "it would be the same for all nodes",
    "rounds": "use --rounds",
}
"""Settings that a launcher of several nodes makes for each, with what to use instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """How many programs of each kind share this machine, or one GPU of it."""

    nodes: int
    proposers: int = 0
    verifiers: int = 0

    @property
    def all(self) -> int:
        return self.nodes + self.proposers + self.verifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShare:
    """The programs that memory holds, and the bytes that a node, and that one of the others, may plan with."""

    programs: Programs
    node_bytes: int
    other_bytes: int


def threads_of_each(config: NodeConfig, count: int) -> int:
    """Returns the threads of each of `count` nodes that share this machine's cores."""
    return config.model.threads or max(1, limits.usable_cores() // count)


def environment_of(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Returns the environment variables of programs with this many threads whose lines are shown."""
    return {**environment, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}


def program_in_folder(
    home: Path, command: Callable[[int], Sequence[str]], *, reports: str = "rounds.jsonl", **more: Any
) -> ChildProgram:
    """Returns a program with `own_settings`, named after its folder, where its output and its reports lie."""
    return ChildProgram(
        name=home.name, command=command, log=home / "output.log", reports=home / "logs" / reports, **more
    )


def own_settings(config: NodeConfig, home: Path, number: int, place: int) -> list[str]:
    """Returns the settings in which a program differs from the others: seed, paths in its folder, and the port for
    Prometheus, which is the configured one plus `place`."""
    port = config.tracking.prometheus_port
    return [
        f"seed={config.seed + number}",  # so that nodes draw different tasks and samples
        f"state_dir={quoted(str(home / 'state'))}",
        f"tracking.log_dir={quoted(str(home / 'logs'))}",
        f"swarm.identity_path={quoted(str(home / 'swarm.pem'))}",
        f"tracking.prometheus_port={port and port + place}",
    ]


def run_command(settings: Sequence[str], rounds_left: int) -> list[str]:
    """Returns the command line of a node."""
    return [sys.executable, "-m", "codezero", "run", "--stop-with-parent", *settings, f"rounds={rounds_left}"]
