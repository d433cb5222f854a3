"""Aggregates the swarm's feedback on each proposal into one judgement that a lying minority cannot control.

    peers' feedback ─► first of each peer ─► median within an address ─► median over addresses ─► JudgedProposal
                       per proposal          so identities gain nothing  a batch after the first feedback

If fewer than half of the values are lies, their median is between two honest values (its breakdown point is one half:
Donoho and Huber 1983). The wait gives honest solvers time to answer besides a liar who always answers first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any

from codezero.proposals import ProposalFeedback

MAX_PROPOSALS = 256
"""The number of proposals kept for feedback; the oldest is dropped first, which solvers no longer find."""
MAX_ADDRESSES = 32
"""The number of addresses whose feedback on one proposal counts."""
MAX_PEERS = 16
"""The number of peers at one address whose feedback on one proposal counts: several honest solvers may run on one
machine or behind one router."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedProposal:
    """The swarm's judgement of a proposal. Made by `FeedbackBook`, read by difficulty and learning."""

    proposal_id: str
    level: int
    success: float
    """The share of attempts that solve it, 0..1: the aggregate of peers' mean predicted probabilities."""
    reward: float
    """The aggregate of peers' mean rewards, -1.2..1.2."""
    differed: bool
    """True if by at least half of the addresses some attempts were right and some wrong, so that it taught. Rewards
    that differ prove less, since they also come from rules of style."""


@dataclass(frozen=True, slots=True)
class _PeerFeedback:
    """One peer's feedback, as means over its attempts."""

    address: str
    success: float
    reward: float
    differed: bool


@dataclass(slots=True)
class _Entry:
    level: int
    feedback: dict[str, _PeerFeedback] = field(default_factory=dict)
    """The feedback, by peer id."""
    waited: int = 0
    """The number of batches since the first feedback."""
    judged: bool = False


class FeedbackBook:
    """Keeps a proposer's published proposals until solvers have judged them; peers cannot make it grow."""

    def __init__(self, wait: int = 1) -> None:
        """`wait` is the number of batches from a proposal's first feedback to its judgement."""
        self._wait = wait
        self._entries: dict[str, _Entry] = {}  # in the order of publication
        self._dropped: Counter[str] = Counter()

    def expect(self, proposal_id: str, level: int) -> None:
        """Adds a published proposal, whose feedback counts from now on. A second call for the same one does nothing."""
        self._entries.setdefault(proposal_id, _Entry(level))
        while len(self._entries) > MAX_PROPOSALS:
            del self._entries[next(iter(self._entries))]

    def add(self, feedback: Iterable[ProposalFeedback]) -> None:
        """Adds peers' feedback, in the order of arrival.

        The same record may come again with every poll: a peer's repetition is dropped without being counted.
        """
        for one in feedback:
            fault = self._add_one(one)
            if fault:
                self._dropped[fault] += 1

    def has_feedback(self, proposal_id: str) -> bool:
        """Returns whether a proposal is kept and has any feedback."""
        entry = self._entries.get(proposal_id)
        return entry is not None and bool(entry.feedback)

    def end_batch(self) -> tuple[JudgedProposal, ...]:
        """Ends a batch; returns the proposals that are now judged, each once. Later feedback on them has no effect."""
        found = []
        for proposal_id, entry in self._entries.items():
            if entry.judged or not entry.feedback:
                continue
            if entry.waited >= self._wait:
                entry.judged = True
                found.append(_judge(proposal_id, entry))
            entry.waited += 1
        return tuple(found)

    def take_dropped(self) -> dict[str, int]:
        """Returns the counts of unused feedback since the last call, by reason: unknown, late, too_many."""
        taken = dict(self._dropped)
        self._dropped.clear()
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Returns plain JSON values, without the counts of dropped feedback."""
        return {"proposals": [_saved_entry(proposal_id, entry) for proposal_id, entry in self._entries.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the proposals of `state`."""
        self._entries = {row["id"]: _loaded_entry(row) for row in state["proposals"]}

    def _add_one(self, one: ProposalFeedback) -> str:
        """Adds one peer's feedback; returns why it is not used, empty if it is or repeats itself."""
        entry = self._entries.get(one.proposal_id)
        if entry is None:
            return "unknown"
        if one.peer_id in entry.feedback:
            return ""
        addresses = Counter(known.address for known in entry.feedback.values())
        others = len(addresses.keys() - {one.address})
        if addresses[one.address] >= MAX_PEERS or others >= MAX_ADDRESSES:
            return "too_many"
        # Late feedback is added too, so that it is counted as late only once.
        entry.feedback[one.peer_id] = _PeerFeedback(
            address=one.address,
            success=fmean(one.p_correct),
            reward=fmean(one.rewards),
            differed=min(one.p_correct) < 0.5 <= max(one.p_correct),
        )
        return "late" if entry.judged else ""


def _judge(proposal_id: str, entry: _Entry) -> JudgedProposal:
    by_address: dict[str, list[_PeerFeedback]] = {}
    for one in entry.feedback.values():
        by_address.setdefault(one.address, []).append(one)
    groups = by_address.values()
    return JudgedProposal(
        proposal_id=proposal_id,
        level=entry.level,
        success=median(median(one.success for one in group) for group in groups),
        reward=median(median(one.reward for one in group) for group in groups),
        differed=median(median(float(one.differed) for one in group) for group in groups) >= 0.5,
    )


def _saved_entry(proposal_id: str, entry: _Entry) -> dict[str, Any]:
    return {
        "id": proposal_id,
        "level": entry.level,
        "waited": entry.waited,
        "judged": entry.judged,
        "words": [{"peer": peer_id, **asdict(one)} for peer_id, one in entry.feedback.items()],
    }


def _loaded_entry(row: Mapping[str, Any]) -> _Entry:
    feedback = {
        one["peer"]: _PeerFeedback(one["address"], one["success"], one["reward"], one["differed"])
        for one in row["words"]
    }
    return _Entry(level=row["level"], feedback=feedback, waited=row["waited"], judged=row["judged"])
