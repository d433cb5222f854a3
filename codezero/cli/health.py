"""`codezero health`: tells programs that watch over a node whether it works."""

from __future__ import annotations

import argparse
from pathlib import Path

from codezero.cli.options import FOLDERS, duration


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "tell whether a node does its work"
    health = commands.add_parser(
        "health",
        help=text,
        description=f"{text[0].upper()}{text[1:]}: exit code 0 if one runs in the folders and each that runs there has "
        "started or finished a round, or a batch, lately; else 1, with the reason. Ask where the node runs: in its "
        "container, not from outside.",
    )
    health.add_argument(
        "folders", nargs="*", metavar="FOLDER", help=f"state or swarm folders (default {', '.join(FOLDERS)})"
    )
    health.add_argument(
        "--within", type=duration, default=duration("1h"), metavar="T", help="such as 30m; default 1h, for slow rounds"
    )
    health.set_defaults(command=_health)


def _health(options: argparse.Namespace) -> None:
    from codezero.runtime.console import Console
    from codezero.views import health

    console = Console()
    for line in health.check([Path(name).expanduser() for name in options.folders or FOLDERS], options.within):
        console.line(line)
