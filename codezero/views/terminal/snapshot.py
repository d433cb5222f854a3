"""All that the view shows of one node at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from codezero.observe.probes import Learning
from codezero.observe.status import Status
from codezero.proposals import BatchReport
from codezero.reports import CasesReport, RoundReport
from codezero.views.accounts import Accounts
from codezero.views.words import Presence, presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A line that the node printed or logged; untrusted text in part."""

    at_s: float
    """Unix time in seconds."""
    text: str
    warns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of one node at one moment, from which the pages are made."""

    role: str
    """The node's role: solver, proposer or verifier."""
    now_s: float
    pid: int | None
    """The node's process; None if it does not run."""
    status: Status | None
    """The node's present or last status; None if it never noted one."""
    name: str = ""
    """The node's name in a swarm folder; empty for a single node."""
    reports: Sequence[RoundReport] = ()
    """A solver's latest rounds, the newest last."""
    learning: Learning | None = None
    """The result of a solver's probes: whether it learns; None without a solver."""
    batches: Sequence[BatchReport] = ()
    """A proposer's latest batches, the newest last."""
    cases: Sequence[CasesReport] = ()
    """A test writer's latest batches, the newest last."""
    accounts: Accounts = field(default_factory=Accounts)
    messages: Sequence[Message] = ()
    """The latest messages, the newest last."""

    @property
    def is_current(self) -> bool:
        """True if the status is of the process that runs now; a node that has just started may not have written its
        own yet, and on a full disk it never does."""
        return self.status is not None and self.status.pid == self.pid

    def presence(self) -> Presence:
        return presence(self.status, self.pid, self.now_s)
