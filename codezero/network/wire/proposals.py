"""Proposals and feedback in the native format: bodies that an announcement names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta
from msgspec.msgpack import Decoder

from codezero.config.reward import MAX_REWARD
from codezero.network.wire.announcement import Announcement
from codezero.network.wire.body import BodyItem, pack_body, unpack_items
from codezero.network.wire.codec import (
    MAX_GROUPS,
    MAX_TEXT_CHARS,
    Count,
    ModelId,
    Reason,
    WireError,
    convert_each,
    converted,
    encode,
    known_level,
)
from codezero.proposals import Proposal

MAX_PROPOSALS = 32
"""The most proposals in a record."""
MAX_RESULTS = 64
"""The most proposals in a record of feedback."""

Filled = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]
Share = Annotated[float, Meta(ge=0, le=1)]
Score = Annotated[float, Meta(ge=-MAX_REWARD, le=MAX_REWARD)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResults:
    """One peer's feedback on a proposal: the results of its attempts."""

    name: str
    """The proposal's name in the format (`board.ProposalBoard.name_of`)."""
    p_correct: tuple[float, ...]
    """[G] The probability, 0..1, that each attempt is correct."""
    rewards: tuple[float, ...]
    """[G] The reward of each attempt."""


class _Proposal(BodyItem):
    model_id: ModelId
    question: Filled
    tests: Filled
    difficulty: Count | None


class _AttemptResults(BodyItem):
    proposal_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
    p_correct: Annotated[list[Share], Meta(min_length=1, max_length=MAX_GROUPS)]
    rewards: Annotated[list[Score], Meta(min_length=1, max_length=MAX_GROUPS)]


_Proposals = Annotated[list[_Proposal], Meta(max_length=MAX_PROPOSALS)]
_Feedback = Annotated[list[_AttemptResults], Meta(max_length=MAX_RESULTS)]
_PROPOSALS, _FEEDBACK = Decoder(_Proposals), Decoder(_Feedback)


def pack_proposals(proposals: Sequence[Proposal]) -> bytes:
    """Encodes proposals as a body. Raises WireError: it is too large, or other nodes would refuse it."""
    items: list[_Proposal] = converted(proposals, _Proposals)
    for item in items:
        known_level(item.difficulty)
    return pack_body(encode(items))


def unpack_proposals(body: bytes, announcement: Announcement) -> tuple[tuple[Proposal, ...], tuple[Reason, ...]]:
    """Returns an announced body's proposals, and a reason for each one dropped. Raises WireError: none can be used."""

    def to_proposal(item: _Proposal) -> Proposal:
        return Proposal(
            peer_id=announcement.peer_id,
            model_id=item.model_id,
            question=item.question,
            tests=item.tests,
            difficulty=known_level(item.difficulty),
        )

    return convert_each(unpack_items(body, announcement, _PROPOSALS), to_proposal)


def pack_feedback(feedback: Sequence[AttemptResults]) -> bytes:
    """Encodes feedback as a body. Raises WireError: it is too large, or other nodes would refuse it."""
    results = [{"proposal_id": one.name, "p_correct": one.p_correct, "rewards": one.rewards} for one in feedback]
    items: list[_AttemptResults] = converted(results, _Feedback)
    _require_whole(items)
    return pack_body(encode(items))


def unpack_feedback(body: bytes, announcement: Announcement) -> tuple[tuple[AttemptResults, ...], tuple[Reason, ...]]:
    """Returns an announced body's feedback; none is dropped alone. Raises WireError: it is malformed."""
    items = unpack_items(body, announcement, _FEEDBACK)
    _require_whole(items)
    results = [
        AttemptResults(name=one.proposal_id, p_correct=tuple(one.p_correct), rewards=tuple(one.rewards))
        for one in items
    ]
    return tuple(results), ()


def _require_whole(feedback: Sequence[_AttemptResults]) -> None:
    """Raises WireError: an attempt lacks its probability or reward, or a proposal comes twice."""
    if any(len(one.p_correct) != len(one.rewards) for one in feedback):
        raise WireError(Reason.MALFORMED, "rewards and probabilities differ in number")
    if len({one.proposal_id for one in feedback}) != len(feedback):
        raise WireError(Reason.MALFORMED, "a proposal comes twice")
