"""`codezero health`: tells programs that watch over a node whether it works."""

from __future__ import annotations

import argparse
from pathlib import Path

from codezero.cli.options import FOLDERS, Commands, add_command, add_folders, duration
from codezero.runtime.console import Console


def add_commands(commands: Commands) -> None:
    text = "tell whether a node does its work"
    about = (
        f"T{text[1:]}: exit code 0 if one runs in the folders and each that runs there has started or finished a "
        "round, or a batch, lately; else 1, with the reason. Ask where the node runs: in its "
        "container, not from outside."
    )
    health = add_command(commands, "health", _health, text, about=about)
    add_folders(health, "all")
    health.add_argument(
        "--within", type=duration, default=duration("1h"), metavar="T", help="such as 30m; default 1h, for slow rounds"
    )


def _health(options: argparse.Namespace) -> None:
    from codezero.views import health

    console = Console()
    for line in health.check(options.folders or [Path(name) for name in FOLDERS], options.within):
        console.line(line)
