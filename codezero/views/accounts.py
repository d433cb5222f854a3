"""A node's rewards, submissions and bets, read from its state folder for all views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from codezero.ledger.reading import read_view
from codezero.ledger.view import LedgerView, Trouble
from codezero.services.market.book import BookError, BookSummary, read_summaries


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketView:
    """One market that the node plays or has played."""

    peer_id: str
    chain_id: int
    contract: str
    num_bets: int
    """The number of bets that the contract is known to have."""
    num_open: int
    """The number of bets that are not confirmed."""
    num_unclaimed: int
    """The number of games whose reward may still come."""
    trouble: Trouble | None
    """The problem that keeps the node from playing, as of `seen_s`; a market no longer played keeps its last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The accounts in one state folder."""

    ledger: LedgerView
    markets: tuple[MarketView, ...] = ()
    problems: tuple[str, ...] = ()
    """Lines of text: what could not be read, and what will never be submitted."""


def read_accounts(folder: Path) -> Accounts:
    """Returns the accounts of a node, whether it runs or not. Never raises for what it finds, and locks nothing."""
    ledger = read_view(folder)
    accounts = Accounts(ledger=ledger, problems=ledger.problems)
    try:
        return replace(accounts, markets=tuple(map(_market, read_summaries(folder))))
    except BookError as error:
        return replace(accounts, problems=(*ledger.problems, str(error)))


def _market(book: BookSummary) -> MarketView:
    trouble = Trouble(text=book.trouble, since_s=book.trouble_since_s, seen_s=book.trouble_seen_s)
    return MarketView(
        peer_id=book.scope.peer_id,
        chain_id=book.scope.chain_id,
        contract=book.scope.contract,
        num_bets=book.num_bets,
        num_open=book.num_open,
        num_unclaimed=book.num_unclaimed,
        trouble=trouble if book.trouble else None,
    )
