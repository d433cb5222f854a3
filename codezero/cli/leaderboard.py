"""`codezero leaderboard`: shows who has earned what in a node's swarm, from its ledger or from the chain."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.cli.options import Commands, add_command, add_folders, count, duration, path, runs_in
from codezero.errors import ConfigError, StateError
from codezero.runtime.amounts import counted, span
from codezero.runtime.console import Console, json_line

if TYPE_CHECKING:
    from codezero.ledger.leaderboard import Leaderboard, LeaderboardRow


def add_commands(commands: Commands) -> None:
    about = (
        "Shows who has earned what: of a ledger on a chain from the contract's events, else from the files of the "
        "nodes here. Exit code 1 if not all of it could be read."
    )
    text = "show who has earned what in a node's swarm"
    board = add_command(commands, "leaderboard", _leaderboard, text, about=about)
    add_folders(board, "the first")
    text = "a ledger that several nodes share (ledger.path=...), in place of the nodes' own"
    board.add_argument("--ledger", type=path, metavar="FILE", help=text)
    board.add_argument("--rpc-url", default="", metavar="URL", help="ask this server, not the node's own")
    text = "how long to read what is new on a chain (default 20s); the next call continues"
    board.add_argument("--within", type=duration, default=20.0, metavar="T", help=text)
    board.add_argument("--offline", action="store_true", help="only what was read before")
    board.add_argument("--top", type=count, default=50, metavar="N", help="how many peers (default 50)")
    board.add_argument("--json", action="store_true", help="for programs: the record `Leaderboard`, on one line")


def _leaderboard(options: argparse.Namespace) -> int:
    from codezero.ledger.board import read_shared, read_swarm_board

    if options.ledger is not None:
        if options.folders or options.rpc_url or options.offline:
            raise ConfigError(f"--ledger {options.ledger} is read alone: leave out FOLDER, --rpc-url and --offline")
        board = read_shared(options.ledger, most=options.top)
    else:
        limit_s = 0.0 if options.offline else options.within
        folders = _folders(options.folders)
        board = read_swarm_board(folders, rpc_url=options.rpc_url, limit_s=limit_s, most=options.top)
    if options.json:
        print(json_line(asdict(board)))
    else:
        show(board)
    return int(bool(board.problem) or not board.is_whole)


def show(board: Leaderboard) -> None:
    """Prints the leaderboard for people."""
    console = Console()
    for line in lines(board, time.time()):
        console.line(line)


def _folders(given: Sequence[Path]) -> list[Path]:
    """Returns the solvers' state folders. Raises StateError: no solver has run there."""
    from codezero.observe.roles import SOLVER

    runs = runs_in(given)
    found = [run.folder for run in runs if run.role == SOLVER]
    if not found:
        roles = " and ".join(dict.fromkeys(run.role for run in runs))
        raise StateError(f"only a {roles} has run in {runs[0].folder.parent}: give the state folder of a solver")
    return found


def lines(board: Leaderboard, now_s: float) -> Iterator[str]:
    """Yields the leaderboard's lines for people; peer ids in them are untrusted text."""
    if board.kind:
        yield f"{board.where}: {counted(board.num_peers, 'peer')}{_as_of(board, now_s)}"
    for rank, place in enumerate(board.places, 1):
        yield _line(board.kind, rank, place, " <- this node" if place == board.own else "")
    if board.num_peers > len(board.places):
        yield f"      and {board.num_peers - len(board.places)} more"
    if board.own is not None and board.own_rank is not None and board.own_rank > len(board.places):
        yield _line(board.kind, board.own_rank, board.own, " <- this node")
    if board.problem:
        yield f"trouble  {board.problem}"


def _as_of(board: Leaderboard, now_s: float) -> str:
    if board.kind != "chain":
        return ""
    if not board.is_whole:
        read = 0 if board.read_block is None else board.read_block
        of = "" if board.head_block is None else f" of {board.head_block}"
        return f", read up to block {read}{of} only: ask again to continue"
    age_s = max(0.0, now_s - (board.as_of_s or now_s))
    return f", as of block {board.read_block}" + (f", {span(age_s)} ago" if age_s >= 60 else "")


def _line(kind: str, rank: int, place: LeaderboardRow, mark: str) -> str:
    from codezero.identity.names import animal_name

    of = "reward" if kind == "chain" else "round"
    last = "" if place.last_round is None else f", last in round {place.last_round}"
    return (
        f"{rank:>4}. {place.reward:+.2f} in {counted(place.rounds, of)}, "
        f"{counted(place.wins, 'vote')}{last}: {place.peer_id} ({animal_name(place.peer_id)}){mark}"
    )
