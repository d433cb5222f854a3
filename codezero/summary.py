"""What `codezero status` says of a run: one record, for people as lines and for programs as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from codezero.errors import CodezeroError
from codezero.identity.names import animal_name
from codezero.ledger.items import describe
from codezero.ledger.leaderboard import read_totals
from codezero.ledger.pending import read_pending
from codezero.market.book import read_summaries
from codezero.observe.status import Status
from codezero.observe.view.header import ALONE
from codezero.proposals import BatchReport
from codezero.runs import Run
from codezero.types import RoundReport
from codezero.watch import log_of

FORMAT = 1
"""Of the JSON document; grows when a field goes or changes its meaning, not when one is added."""
LATEST = 10
"""Rounds or batches that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """Points that are in no submission yet."""

    peer_id: str
    contract: str
    chain_id: int
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A submission that the chain has not taken yet."""

    what: str
    since: str
    """Local time."""
    state: str
    tries: int
    note: str
    """The last error; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary:
    rounds: int
    earned: float
    on_chain: bool
    unsent: Sequence[Unsent] = ()
    pending: Sequence[Waiting] = ()
    trouble: str = ""
    """What keeps rewards from the chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketSummary:
    peer_id: str
    contract: str
    chain_id: int
    bets: int
    not_confirmed: int
    unclaimed: int
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    at_s: float
    """Unix time."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One of `runs` in the document. All text may in part be of peers and models: untrusted."""

    name: str
    """Of the node in a swarm folder; else its role."""
    role: str
    """solver or proposer."""
    folder: str
    log_dir: str
    running: bool
    pid: int | None
    """While it runs."""
    animal_name: str
    """Empty for a node that trains alone by choice."""
    status: Status | None
    """What it does, or did last (`Status` in codezero/observe/status.py)."""
    left_s: float | None
    """Seconds until its round is over; None where that is not known."""
    rounds: Sequence[RoundReport]
    """A solver's latest, the newest last (`RoundReport` in codezero/types.py)."""
    batches: Sequence[BatchReport]
    """A proposer's latest, the newest last (`BatchReport` in codezero/proposals.py)."""
    ledger: LedgerSummary | None
    """None where there is none."""
    markets: Sequence[MarketSummary]
    last_warning: Warned | None
    problems: Sequence[str]
    """What could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What `codezero status --json` prints."""

    format: int
    at_s: float
    """Unix time."""
    runs: Sequence[Summary]


def summarise(run: Run) -> Summary:
    """What is known of a run. Never raises for what it finds."""
    pid, status, now_s = run.pid(), run.status(), time.time()
    ledger, markets, problems = None, [], []
    try:
        ledger = _ledger(run.folder, now_s)
        markets = _markets(run.folder)
    except CodezeroError as error:
        problems.append(str(error))
    warnings = [message for message in log_of(run).messages() if message.warns]
    return Summary(
        name=run.name,
        role=run.role,
        folder=str(run.folder),
        log_dir=str(run.log_dir),
        running=pid is not None,
        pid=pid,
        animal_name=animal_name(status.peer_id) if status is not None and status.peer_id not in ("", ALONE) else "",
        status=status,
        left_s=status.left_s(now_s) if status is not None and pid is not None else None,
        rounds=run.reports()[-LATEST:],
        batches=run.batches()[-LATEST:],
        ledger=ledger,
        markets=markets,
        last_warning=Warned(at_s=warnings[-1].at_s, text=warnings[-1].text) if warnings else None,
        problems=problems,
    )


def to_json(summaries: Sequence[Summary]) -> str:
    """The document on one line, in ASCII: whatever peers wrote, it moves no cursor."""
    document = Document(format=FORMAT, at_s=time.time(), runs=summaries)
    return json.dumps(msgspec.to_builtins(document)).replace("\x7f", "\\u007f")


def _ledger(folder: Path, now_s: float) -> LedgerSummary | None:
    """Raises LedgerError: a file cannot be read."""
    if not (folder / "ledger.sqlite").exists():
        return None
    rounds, earned = read_totals(folder / "ledger.sqlite")
    if not (folder / "outbox.sqlite").exists():
        return LedgerSummary(rounds=rounds, earned=earned, on_chain=False)
    found = read_pending(folder / "outbox.sqlite")
    return LedgerSummary(
        rounds=rounds,
        earned=earned,
        on_chain=True,
        unsent=[
            Unsent(peer_id=scope.peer_id, contract=scope.contract, chain_id=scope.chain_id, points=points)
            for scope, points in found.owed
        ],
        pending=[
            Waiting(what=row.what, since=row.since, state=row.state, tries=row.tries, note=row.note)
            for row in describe(found.items, now_s)
        ],
        trouble=found.trouble,
    )


def _markets(folder: Path) -> list[MarketSummary]:
    """Raises CodezeroError: a book cannot be read."""
    return [
        MarketSummary(
            peer_id=book.scope.peer_id,
            contract=book.scope.contract,
            chain_id=book.scope.chain_id,
            bets=book.num_bets,
            not_confirmed=book.num_open,
            unclaimed=book.num_unclaimed,
            trouble=book.trouble,
        )
        for book in read_summaries(folder)
    ]
