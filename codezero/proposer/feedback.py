"""What a swarm says of one's proposals, made into one judgement each that a lying minority cannot move out of range.

    peers' words ─► first of each peer ─► median within an address ─► median over addresses ─► JudgedProposal
                    per proposal          so identities are cheap     a batch after the first word

A median of values of which fewer than half are lies lies between two honest ones (its breakdown point is one half:
Donoho and Huber 1983). The waiting gives honest solvers time to be heard beside a liar who always answers first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any

from codezero.config.learning import MAX_REWARD
from codezero.proposals import ProposalFeedback
from codezero.runtime import saved

MAX_PROPOSALS = 256
"""Proposals whose feedback is awaited or was heard lately; the oldest gives way. Solvers find none that old."""
MAX_ADDRESSES = 32
"""Heard on one proposal."""
MAX_PEERS = 16
"""Heard of one address on one proposal: on one machine or behind one router, several honest solvers may sit."""
MAX_ATTEMPTS = 64
MAX_NAME = 256
"""Characters of a peer id or an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedProposal:
    """What the swarm made of a proposal. Made by `FeedbackBook`, read by difficulty and learning."""

    proposal_id: str
    level: int
    success: float
    """Share of attempts that solve it, 0..1: the aggregate of peers' mean predicted probability."""
    reward: float
    """The aggregate of peers' mean rewards, -1.2..1.2"""
    differed: bool
    """Whether some attempts at it were right and some wrong, by at least half of the addresses: whether it taught. That
    rewards differ says less, since rules of style tell attempts apart too."""
    num_peers: int
    """Words that were heard."""


@dataclass(frozen=True, slots=True)
class _Word:
    """What one peer says: means over its attempts."""

    address: str
    success: float
    reward: float
    differed: bool


@dataclass(slots=True)
class _Entry:
    level: int
    words: dict[str, _Word] = field(default_factory=dict)
    """By peer id."""
    waited: int = 0
    """Batches since the first word."""
    judged: bool = False


class FeedbackBook:
    """Keeps a proposer's published proposals until solvers have judged them. Bounded, whatever peers send."""

    def __init__(self, wait: int = 1) -> None:
        """wait: batches from the one in which a proposal is first heard of to the one in which it is judged."""
        self._wait = wait
        self._entries: dict[str, _Entry] = {}  # in the order of publishing
        self._dropped: Counter[str] = Counter()

    def expect(self, proposal_id: str, level: int) -> None:
        """A proposal was published: words on it count from now on. Again for the same one does nothing."""
        self._entries.setdefault(proposal_id, _Entry(level))
        while len(self._entries) > MAX_PROPOSALS:
            del self._entries[next(iter(self._entries))]

    def hear(self, words: Iterable[ProposalFeedback]) -> int:
        """Takes peers' words, in the order they came; returns how many counted.

        The same record may come again with every poll: what a peer says twice is counted once, and dropped silently.
        """
        heard = 0
        for word in words:
            fault = self._take(word)
            if fault:
                self._dropped[fault] += 1
            heard += fault is None
        return heard

    def is_heard(self, proposal_id: str) -> bool:
        """Whether anybody has said a word on a proposal that is kept."""
        entry = self._entries.get(proposal_id)
        return entry is not None and bool(entry.words)

    def close(self) -> tuple[JudgedProposal, ...]:
        """Ends a batch: the proposals that are now judged, each once; words that come later change nothing."""
        found = []
        for proposal_id, entry in self._entries.items():
            if entry.judged or not entry.words:
                continue
            if entry.waited >= self._wait:
                entry.judged = True
                found.append(_judge(proposal_id, entry))
            entry.waited += 1
        return tuple(found)

    def take_dropped(self) -> dict[str, int]:
        """Words not used since the last call, by reason: malformed, unknown, late, crowded."""
        taken = dict(self._dropped)
        self._dropped.clear()
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Plain JSON values; counts of dropped words are no part of it."""
        return {"proposals": [_saved_entry(proposal_id, entry) for proposal_id, entry in self._entries.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues with the proposals of `state`. Raises StateError: it is damaged."""
        rows = saved.items(state, "proposals")[-MAX_PROPOSALS:]
        self._entries = {saved.text(row, "id"): _loaded_entry(row) for row in rows}

    def _take(self, word: ProposalFeedback) -> str | None:
        """Notes a word; why it was not used, empty where a repetition needs no mention, None if it was."""
        if not _well_formed(word):
            return "malformed"
        entry = self._entries.get(word.proposal_id)
        if entry is None:
            return "unknown"
        if word.peer_id in entry.words:
            return ""
        addresses = Counter(known.address for known in entry.words.values())
        others = len(addresses.keys() - {word.address})
        if addresses[word.address] >= MAX_PEERS or others >= MAX_ADDRESSES:
            return "crowded"
        # A late word is noted too, so that it is counted as late only once.
        entry.words[word.peer_id] = _Word(
            address=word.address,
            success=fmean(word.p_correct),
            reward=fmean(word.rewards),
            differed=min(word.p_correct) < 0.5 <= max(word.p_correct),
        )
        return "late" if entry.judged else None


def _judge(proposal_id: str, entry: _Entry) -> JudgedProposal:
    by_address: dict[str, list[_Word]] = {}
    for word in entry.words.values():
        by_address.setdefault(word.address, []).append(word)
    groups = by_address.values()
    return JudgedProposal(
        proposal_id=proposal_id,
        level=entry.level,
        success=median(median(word.success for word in words) for words in groups),
        reward=median(median(word.reward for word in words) for words in groups),
        differed=median(median(float(word.differed) for word in words) for words in groups) >= 0.5,
        num_peers=len(entry.words),
    )


def _well_formed(word: ProposalFeedback) -> bool:
    names = (word.proposal_id, word.peer_id, word.address)
    return (
        all(isinstance(name, str) and len(name) <= MAX_NAME for name in names)
        and isinstance(word.p_correct, tuple)
        and isinstance(word.rewards, tuple)
        and 1 <= len(word.rewards) == len(word.p_correct) <= MAX_ATTEMPTS
        and all(_within(p, 0.0, 1.0) for p in word.p_correct)
        and all(_within(reward, -MAX_REWARD, MAX_REWARD) for reward in word.rewards)
    )


def _within(value: object, low: float, high: float) -> bool:
    """Whether it is a number of the range; NaN is not, and neither is a boolean."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return low <= value <= high


def _saved_entry(proposal_id: str, entry: _Entry) -> dict[str, Any]:
    return {
        "id": proposal_id,
        "level": entry.level,
        "waited": entry.waited,
        "judged": entry.judged,
        "words": [{"peer": peer_id, **asdict(word)} for peer_id, word in entry.words.items()],
    }


def _loaded_entry(row: Any) -> _Entry:
    entry = _Entry(level=saved.level(row), waited=saved.count(row, "waited"), judged=saved.flag(row, "judged"))
    for word in saved.items(row, "words"):
        entry.words[saved.text(word, "peer")] = _Word(
            address=saved.text(word, "address"),
            success=saved.number(word, "success"),
            reward=saved.number(word, "reward"),
            differed=saved.flag(word, "differed"),
        )
    return entry
