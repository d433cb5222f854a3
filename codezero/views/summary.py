"""The record of a run that `codezero status --json` prints for programs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from codezero.ledger.view import LedgerView, MarketView
from codezero.observe.probes import Learning
from codezero.observe.status import Status
from codezero.proposals import BatchReport
from codezero.reports import CasesReport, RoundReport
from codezero.runtime.console import json_line
from codezero.views.runs import Run
from codezero.views.terminal.snapshot import Message
from codezero.views.watch import snapshots_of

FORMAT = 1
"""The version of the JSON document; grows when a field goes or changes its meaning, not when one is added."""
LATEST = 10
"""The most rounds or batches in the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One of `runs` in the document. All text may in part come from peers and models: untrusted."""

    name: str
    """The node's name in a swarm folder; else its role."""
    role: str
    """The node's role: solver, proposer or verifier."""
    folder: str
    log_dir: str
    running: bool
    pid: int | None
    """The process id while it runs; else None."""
    animal_name: str
    """The animal name; empty for a node that trains alone by choice."""
    status: Status | None
    """The node's present or last status (`Status` in codezero/observe/status.py)."""
    left_s: float | None
    """Seconds until its round is over; None if that is not known."""
    learning: Learning | None
    """The result of a solver's probes (`Learning` in codezero/observe/probes.py), also of one that learns beside a test
    writer; None without a solver."""
    rounds: Sequence[RoundReport]
    """A solver's latest rounds, the newest last (`RoundReport` in codezero/reports.py)."""
    batches: Sequence[BatchReport]
    """A proposer's latest batches, the newest last (`BatchReport` in codezero/proposals.py)."""
    cases: Sequence[CasesReport]
    """A test writer's latest batches, the newest last (`CasesReport` in codezero/reports.py)."""
    ledger: LedgerView | None
    """The node's ledger (`LedgerView` in codezero/ledger/view.py); None if there is none."""
    markets: Sequence[MarketView]
    last_warning: Message | None
    problems: Sequence[str]
    """Lines of text about files that could not be read, and points that will never be submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The output of `codezero status --json`."""

    format: int
    at_s: float
    """Unix time in seconds."""
    runs: Sequence[RunSummary]


def summarise(run: Run) -> RunSummary:
    """Returns the facts known of a run. Never raises because of what its files contain."""
    now = snapshots_of(run)()
    status = now.status
    return RunSummary(
        name=run.name,
        role=run.role,
        folder=str(run.folder),
        log_dir=str(run.log_dir),
        running=now.pid is not None,
        pid=now.pid,
        animal_name=status.animal if status is not None else "",
        status=status,
        left_s=status.left_s(now.now_s) if status is not None and now.is_current else None,
        learning=now.learning,
        rounds=now.reports[-LATEST:],
        batches=now.batches[-LATEST:],
        cases=now.cases[-LATEST:],
        ledger=now.accounts.ledger,
        markets=now.accounts.markets,
        last_warning=next((message for message in reversed(now.messages) if message.warns), None),
        problems=now.accounts.ledger.problems if now.accounts.ledger is not None else (),
    )


def to_json(summaries: Sequence[RunSummary]) -> str:
    """Returns the document on one line."""
    return json_line(msgspec.to_builtins(Document(format=FORMAT, at_s=time.time(), runs=summaries)))
