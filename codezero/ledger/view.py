"""The records by which a node's ledger is shown: what was earned, what the ledger took last, what waits and why.

They are plain values for a terminal, a page or JSON; `reading` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submission:
    """The fields that both records of a submission have."""

    kind: str
    """`round` (of a local ledger), `registration`, `reward` or `vote`."""
    what: str
    """The submission in words."""
    round: int | None
    """The round's number; None for a registration."""
    points: float | None
    """The reward of a reward or round; None for the other kinds."""
    winners: tuple[str, ...]
    """Peer ids voted for; untrusted text."""
    reference: str
    """The hash of the transaction, for a submission that waits the one that was sent last; or the row of the file.
    Empty if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionView(_Submission):
    """A submission that the ledger took or refused."""

    at_s: float
    """The Unix time at which it was taken or refused."""
    reason: str = ""
    """The reason why it was refused, else empty; untrusted text in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingItem(_Submission):
    """A submission that the chain has not taken yet."""

    state: str
    """`waiting`, `sent` or `handed over`, as in `items.ItemState`."""
    since_s: float
    """The Unix time at which it was made."""
    tries: int
    next_try_s: float
    """The Unix time of the next try; if that is past, the node tries at its next poll of the chain."""
    why: str
    """The reason why it is not on the chain yet; untrusted text in part."""
    last_error: str
    """The error of the last try, else empty; untrusted text in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem that keeps submissions from the chain."""

    text: str
    """The problem in words; untrusted text in part."""
    since_s: float
    """The Unix time at which it began."""
    seen_s: float
    """The Unix time at which the node last noted it; a stopped node notes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """The ledger of one state folder. All numbers from `num_rounds` on are this node's own."""

    kind: str = ""
    """`local`, `wallet` or `modal`; `chain` if it is not known which of the latter two; empty if there is no ledger."""
    peer_id: str = ""
    """The node's peer id; empty if it is not known."""
    path: str = ""
    """The file that has all rounds, which nodes may share."""
    chain_id: int | None = None
    contract: str = ""
    num_rounds: int = 0
    """The number of rounds in the file."""
    earned: float = 0.0
    last_accepted: SubmissionView | None = None
    """The newest submission of any kind that the ledger has taken."""
    last_reward: SubmissionView | None = None
    """The newest reward that the ledger has taken; for a local ledger the same as `last_accepted`."""
    last_refused: SubmissionView | None = None
    """The newest submission that the contract refused, for good or for now; it may have taken it since."""
    pending: tuple[PendingItem, ...] = ()
    """Submissions that wait, in the order of sending."""
    unsent_points: float = 0.0
    """Points earned that are in no submission yet; the chain takes whole points, so a fraction remains."""
    unsent_since_s: float | None = None
    """The Unix time of the first of these points; None if there is nothing to submit."""
    trouble: Trouble | None = None
    """The problem that keeps submissions from the chain; None if there is none."""
    problems: tuple[str, ...] = ()
    """Lines of text: files that could not be read, and points that will never be submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketView:
    """One market that a node plays or has played."""

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
