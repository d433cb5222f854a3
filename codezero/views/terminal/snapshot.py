"""All that the view shows of one node at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codezero.observe.probes import Learning
from codezero.observe.status import Status
from codezero.proposals import BatchReport
from codezero.types import RoundReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A line that the node printed or logged; untrusted text in part."""

    at_s: float
    """Unix time."""
    text: str
    warns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Made by whoever watches a node, read by the pages."""

    role: str
    """solver or proposer."""
    now_s: float
    is_running: bool
    status: Status | None
    """None for a node that never noted one."""
    name: str = ""
    """Among the nodes of a swarm folder; empty for one alone."""
    reports: Sequence[RoundReport] = ()
    """A solver's latest rounds, the newest last."""
    learning: Learning | None = None
    """Whether a solver learns."""
    batches: Sequence[BatchReport] = ()
    """A proposer's latest batches, the newest last."""
    ledger: Sequence[tuple[str, str]] = ()
    """What the ledger says, as (label, text)."""
    messages: Sequence[Message] = ()
    """The newest last."""
