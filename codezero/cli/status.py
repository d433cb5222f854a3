"""`codezero status`: what a node has earned, what of it waits for the chain, and how it fares in the market."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codezero.observe.console import Console

MOST_SHOWN = 50
"""Peers of a leaderboard."""


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "show what a node has earned, and what waits for the chain"
    status = commands.add_parser("status", help=text, description=f"{text}. The node may be running.")
    status.add_argument("--state-dir", default="state", metavar="DIR", help="its state folder (default state)")
    text = "a ledger that several nodes share (ledger.path=...): show who has earned what"
    status.add_argument("--ledger", metavar="FILE", help=text)
    status.set_defaults(command=_status)


def _status(options: argparse.Namespace) -> None:
    from codezero.errors import StateError
    from codezero.ledger.leaderboard import read_totals
    from codezero.observe.console import Console

    folder, console = Path(options.state_dir).expanduser(), Console()
    if options.ledger is not None:
        _leaderboard(Path(options.ledger).expanduser(), console)
        return
    if not (folder / "ledger.sqlite").exists():
        raise StateError(
            f"{folder} holds no ledger: give the state folder of a node that has run, with --state-dir, or the ledger "
            "that it shares (ledger.path=...), with --ledger"
        )
    rounds, reward = read_totals(folder / "ledger.sqlite")
    console.line(f"earned   {reward:+.2f} in {rounds} round{'s' * (rounds != 1)}")
    if (folder / "outbox.sqlite").exists():
        _chain(folder / "outbox.sqlite", console)
    _markets(folder, console)


def _chain(path: Path, console: Console) -> None:
    from codezero.ledger.items import describe
    from codezero.ledger.pending import read_pending

    pending = read_pending(path)
    for scope, points in pending.owed:
        console.line(f"unsent   {points:+.2f} of peer {scope.peer_id} for {scope.contract} on chain {scope.chain_id}")
    if pending.trouble:
        console.line(f"trouble  {pending.trouble}")
    rows = describe(pending.items, time.time())
    for row in rows:
        tries = f" after {row.tries} tr{'ies' if row.tries != 1 else 'y'}" if row.tries else ""
        note = f": {row.note}" if row.note else ""
        console.line(f"pending  {row.what}, since {row.since}, {row.state}{tries}{note}")
    if not rows:
        console.line("pending  nothing")


def _markets(folder: Path, console: Console) -> None:
    from codezero.market.book import read_summaries

    for book in read_summaries(folder):
        console.line(
            f"market   {book.num_bets} bet{'s' * (book.num_bets != 1)} of peer {book.scope.peer_id} at "
            f"{book.scope.contract} on chain {book.scope.chain_id}; {book.num_open} not confirmed, "
            f"{book.num_unclaimed} game{'s' * (book.num_unclaimed != 1)} to be claimed"
        )
        if book.trouble:
            console.line(f"trouble  {book.trouble}")


def _leaderboard(path: Path, console: Console) -> None:
    from codezero.identity.names import animal_name
    from codezero.ledger.leaderboard import read_leaderboard

    places = read_leaderboard(path)
    for number, place in enumerate(places[:MOST_SHOWN], 1):
        console.line(
            f"{number:>4}. {place.reward:+.2f} in {place.rounds} round{'s' * (place.rounds != 1)}, "
            f"{place.wins} vote{'s' * (place.wins != 1)}: {place.peer_id} ({animal_name(place.peer_id)})"
        )
    if len(places) > MOST_SHOWN:
        console.line(f"      and {len(places) - MOST_SHOWN} more")
