"""`codezero dashboard`: serves the web dashboard of this machine's nodes."""

from __future__ import annotations

import argparse
from pathlib import Path

from codezero.cli.options import FOLDERS, Commands, add_command, add_folders, path, port
from codezero.errors import CommandError
from codezero.runtime.console import Console

PORT = 7007


def add_commands(commands: Commands) -> None:
    text = "show in the browser what nodes do and how they learn"
    about = (
        f"S{text[1:]}: curves, rounds, solutions and verdicts, peers, leaderboard. Reads what nodes leave on disk, "
        "while they run or after, and changes nothing. Ctrl-C ends it."
    )
    dashboard = add_command(commands, "dashboard", _dashboard, text, about=about)
    add_folders(dashboard, "all")
    dashboard.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; any but this machine's own lets others read all of it",
    )
    dashboard.add_argument("--port", type=port, default=PORT, help=f"default {PORT}; 0 takes a free one")
    text = "a ledger that several nodes share (ledger.path=...), for the leaderboard; default: the nodes' own"
    dashboard.add_argument("--ledger", type=path, metavar="FILE", help=text)


def _dashboard(options: argparse.Namespace) -> None:
    from codezero.ledger.board import read_shared
    from codezero.views.web.page_data import MOST
    from codezero.views.web.serve import serve
    from codezero.views.web.source import WatchedFolders

    for folder in options.folders:
        if not folder.is_dir():
            raise CommandError(
                f"there is no folder {folder}: give the state folder of a node (state_dir, default state), or the "
                "folder of a swarm such as swarms/home"
            )
    folders = options.folders or [Path(name) for name in FOLDERS]
    board = None if options.ledger is None else lambda: read_shared(options.ledger, most=MOST)
    serve(WatchedFolders(folders), board, options.host, options.port, Console().line)
