"""A node's ledger as its user is to see it: what it has earned, what the ledger took last, what waits and why.

Plain values, for a terminal, a page or JSON; `reading` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionView:
    """One thing that the ledger took or refused."""

    kind: str
    """round (a local ledger's), registration, reward or vote."""
    what: str
    """In words."""
    round: int | None
    """None for a registration."""
    points: float | None
    """Of a reward or round."""
    winners: tuple[str, ...]
    """Peer ids voted for; untrusted text."""
    reference: str
    """The transaction's hash, or the row of the file; empty where it is not known."""
    at_s: float | None
    """Unix time; None for what an earlier version of codezero submitted."""
    reason: str = ""
    """Why it was refused; untrusted text in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingItem:
    """One thing that the chain is still to take."""

    kind: str
    what: str
    round: int | None
    points: float | None
    winners: tuple[str, ...]
    state: str
    """waiting, sent, or handed over: as `items.ItemState`."""
    since_s: float
    """Unix time, as `next_try_s`."""
    tries: int
    next_try_s: float
    """When it is tried, or looked at, again; in the past: at the node's next look at the chain."""
    why: str
    """Why it is not on the chain yet."""
    last_error: str
    """Empty without one; untrusted text in part."""
    reference: str
    """The transaction that was sent last; empty before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is in the way, in words; untrusted text in part."""

    text: str
    since_s: float | None
    """Unix time; None where it is not known."""
    seen_s: float | None
    """As of when: a node that has stopped notes nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """Of one state folder."""

    kind: str = ""
    """local, wallet or modal; chain for either of the two where the node has not noted which; empty: no ledger."""
    peer_id: str = ""
    """Empty where it is not known."""
    path: str = ""
    """The file with all rounds, which nodes may share."""
    chain_id: int | None = None
    contract: str = ""
    num_rounds: int = 0
    """Of this node, and so is all that follows."""
    earned: float = 0.0
    last_accepted: SubmissionView | None = None
    """The newest that the ledger has taken, whatever its kind."""
    last_reward: SubmissionView | None = None
    """The newest reward among these: for a local ledger the same."""
    last_refused: SubmissionView | None = None
    """The newest that the contract refused, for good or for now: it may have taken it since."""
    pending: tuple[PendingItem, ...] = ()
    """In the order in which they are submitted."""
    unsent_points: float = 0.0
    """Earned and in no submission yet; less than a whole point stays there."""
    unsent_since_s: float | None = None
    """Unix time; None while nothing is to be submitted."""
    trouble: Trouble | None = None
    """What keeps submissions from the chain; None while nothing does."""
    problems: tuple[str, ...] = ()
    """What could not be read, or will never be submitted; a line each."""
