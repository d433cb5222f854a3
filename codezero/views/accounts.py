"""A node's rewards, submissions and bets, read from its state folder, and their lines of text, for the terminal view
and `codezero status`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codezero.identity.names import animal_name
from codezero.ledger.reading import read_view
from codezero.ledger.view import LedgerView, MarketView, PendingItem, SubmissionView
from codezero.runtime.amounts import counted, local


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The accounts in one state folder."""

    ledger: LedgerView | None = None
    """The node's ledger; None if there is none."""
    markets: Sequence[MarketView] = ()


def read_accounts(folder: Path) -> Accounts:
    """Returns the accounts of a node, whether it runs or not. Locks nothing, and never raises because of file
    contents."""
    # imported here: a node without a market imports nothing of it
    from codezero.services.market.book import read_markets

    view = read_view(folder)
    return Accounts(ledger=view if view.kind else None, markets=read_markets(folder))


def account_rows(accounts: Accounts, now_s: float) -> Iterator[tuple[str, str]]:
    """Yields rows of (label, text), with untrusted text in part: what was earned and taken, what waits and why."""
    if accounts.ledger is not None:
        yield from _ledger_rows(accounts.ledger, now_s)
    for book in accounts.markets:
        yield (
            "market",
            f"{counted(book.num_bets, 'bet')} of {animal_name(book.peer_id)} at {book.contract} on "
            f"chain {book.chain_id}; {book.num_open} not confirmed, "
            f"{counted(book.num_unclaimed, 'game')} to be claimed",
        )
        if book.trouble is not None:
            yield "trouble", book.trouble.text
    for problem in accounts.ledger.problems if accounts.ledger is not None else ():
        yield "problem", problem


def _ledger_rows(view: LedgerView, now_s: float) -> Iterator[tuple[str, str]]:
    if view.num_rounds or not view.problems:  # a ledger that cannot be read says nothing of earnings
        yield "earned", f"{view.earned:+.2f} in {counted(view.num_rounds, 'round')}"
    if view.last_accepted is not None:
        yield "accepted", f"{_short(view.last_accepted)}, {local(view.last_accepted.at_s)}"
    if view.last_refused is not None:
        yield "refused", f"{_short(view.last_refused)}, {local(view.last_refused.at_s)}: {view.last_refused.reason}"
    if view.kind == "local":
        return
    if view.unsent_points:
        yield "unsent", f"{view.unsent_points:+.2f} for {view.contract} on chain {view.chain_id}"
    if view.trouble is not None:
        yield "trouble", view.trouble.text
    for item in view.pending:
        tries = f" after {item.tries} tr{'ies' if item.tries != 1 else 'y'}" if item.tries else ""
        wait_s = item.next_try_s - now_s
        again = f", tried again in {wait_s:.0f} s" if wait_s >= 1 else ""
        yield "pending", f"{_short(item)}: {item.why}; {item.state}{again}{tries}, since {local(item.since_s)}"
    if not view.pending:
        yield "pending", "nothing"


def _short(one: SubmissionView | PendingItem) -> str:
    """Returns kind, points, winners and round. Peers have their animal names, since ids are long."""
    points = "" if one.points is None else f" {one.points:+g}" if one.kind == "reward" else f" {one.points:+.2f}"
    number = "" if one.round is None else f" of round {one.round}"
    winners = f" for {', '.join(map(animal_name, one.winners))}" if one.kind == "vote" else ""
    return f"round {one.round}{points}" if one.kind == "round" else f"{one.kind}{points}{winners}{number}"
