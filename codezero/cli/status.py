"""`codezero status`: shows what a node, or each node of a swarm, is doing, its earnings, and its problems."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.cli.options import Commands, add_command, add_folders, runs_in
from codezero.errors import ConfigError, StateError
from codezero.runtime.console import Console

if TYPE_CHECKING:
    from codezero.views.runs import Run
    from codezero.views.terminal.snapshot import Snapshot

NOT_RUNNING = 3
"""The exit code if a node is not running, by the convention of service scripts (LSB)."""
_REFIND_S = 5.0
_EPILOG = """\
examples:
  codezero status                      the node here, or those of swarms/home or gpus
  codezero status swarms/home          every node of a swarm folder
  codezero status --watch swarms/home  on one screen that renews itself; q leaves it, the nodes run on
  codezero status --json | jq '.runs[0].status.round'

exit codes: 0 every node found is running; 3 at least one is not; 1 no node has run there.
--json prints one line, the record `Document` of codezero/views/summary.py, in ASCII: texts of peers in it cannot harm
a terminal.
"""


def add_commands(commands: Commands) -> None:
    about = "Shows what nodes do and have earned, from what they leave on disk. They may be running or not."
    text = "show what a node does, what it has earned, and what hinders it"
    status = add_command(commands, "status", _status, text, about=about, examples=_EPILOG)
    add_folders(status, "the first")
    how = status.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="for programs: one JSON document")
    how.add_argument("--watch", action="store_true", help="the terminal view, until q")


def _status(options: argparse.Namespace) -> int:
    from codezero.views.summary import summarise, to_json
    from codezero.views.terminal.page import plain
    from codezero.views.watch import MOST_REPORTS, snapshots_of

    if options.watch:
        return _watch(options.folders)
    runs = runs_in(options.folders, MOST_REPORTS)
    if options.json:
        summaries = [summarise(run) for run in runs]
        print(to_json(summaries))
        return 0 if all(summary.running for summary in summaries) else NOT_RUNNING
    snapshots, console = [snapshots_of(run)() for run in runs], Console()
    for number, snapshot in enumerate(snapshots):
        for line in [*([""] if number else []), *plain(snapshot)]:
            console.line(line)
    return 0 if all(snapshot.pid is not None for snapshot in snapshots) else NOT_RUNNING


def _watch(folders: Sequence[Path]) -> int:
    """Shows the terminal view until the user leaves it. Raises ConfigError: there is no suitable terminal."""
    import signal

    from codezero.views.terminal.live import View, can_show

    if not can_show(sys.stdout):
        raise ConfigError("--watch needs a terminal in UTF-8, in the foreground: leave it out, or use --json")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with suppress(KeyboardInterrupt), View(_reader(folders), lambda: view.leave(), quits="leave") as view:
        view.wait()
    return 0


def _reader(folders: Sequence[Path]) -> Callable[[], Sequence[Snapshot]]:
    """Returns a function that takes snapshots of all runs, including those that start later. Raises StateError: there
    is no run now."""
    import time

    from codezero.views.watch import MOST_REPORTS, snapshots_of

    def run_key(run: Run) -> tuple[Path, str]:
        return run.folder, run.role

    found = {run_key(run): (run.log_dir, snapshots_of(run)) for run in runs_in(folders, MOST_REPORTS)}
    looked_at_s = time.monotonic()

    def read() -> Sequence[Snapshot]:
        nonlocal looked_at_s
        if time.monotonic() - looked_at_s > _REFIND_S:
            looked_at_s = time.monotonic()
            with suppress(StateError):  # where the folders are gone, their last state stays in sight
                for run in runs_in(folders, MOST_REPORTS):
                    if run_key(run) not in found or found[run_key(run)][0] != run.log_dir:  # it can start with another
                        found[run_key(run)] = run.log_dir, snapshots_of(run)
        return [snapshot() for _, snapshot in found.values()]

    return read
