"""Proposals and feedback in the node's own format: two more bodies that an announcement names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from codezero.network.wire.announcement import Announcement
from codezero.network.wire.body import pack_body, unpack_body
from codezero.network.wire.codec import (
    MAX_GROUPS,
    MAX_TEXT_CHARS,
    UNREADABLE,
    ModelId,
    Reason,
    WireError,
    decode_exactly,
    encode,
)
from codezero.proposals import Proposal

MAX_PROPOSALS = 32
"""In a record."""
MAX_MARKS = 64
"""Proposals in a record of feedback."""
MAX_REWARD = 1.2 + 1e-6
"""Largest reward by magnitude (config.learning), and what floating point may add to it."""

Filled = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]
Share = Annotated[float, Meta(ge=0, le=1)]
Score = Annotated[float, Meta(ge=-MAX_REWARD, le=MAX_REWARD)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What one peer's attempts at a proposal came to, as it is sent."""

    name: str
    """What the format calls the proposal by (board.ProposalBoard.name_of)."""
    p_correct: tuple[float, ...]
    """[G] 0..1"""
    rewards: tuple[float, ...]
    """[G]"""


class _Proposal(Struct):
    model_id: ModelId
    question: Filled
    tests: Filled
    difficulty: Annotated[int, Meta(ge=1, le=5)] | None


class _Marks(Struct):
    proposal_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
    p_correct: Annotated[list[Share], Meta(min_length=1, max_length=MAX_GROUPS)]
    rewards: Annotated[list[Score], Meta(min_length=1, max_length=MAX_GROUPS)]


_Proposals = Annotated[list[_Proposal], Meta(max_length=MAX_PROPOSALS)]
_Feedback = Annotated[list[_Marks], Meta(max_length=MAX_MARKS)]
_PROPOSALS, _FEEDBACK = Decoder(_Proposals), Decoder(_Feedback)


def pack_proposals(proposals: Sequence[Proposal]) -> bytes:
    """The body of an announcement. Raises WireError: it is too large, or other nodes would refuse it."""
    try:
        return pack_body(encode(msgspec.convert(list(proposals), _Proposals, from_attributes=True)))
    except UNREADABLE as error:
        raise WireError(Reason.MALFORMED, str(error)) from error


def unpack_proposals(body: object, announcement: Announcement) -> tuple[Proposal, ...]:
    """The proposals of an announced body. Raises WireError."""
    found = decode_exactly(_PROPOSALS, unpack_body(body, announcement))
    return tuple(Proposal(peer_id=announcement.peer_id, **msgspec.structs.asdict(proposal)) for proposal in found)


def pack_feedback(feedback: Sequence[Marks]) -> bytes:
    """The body of an announcement. Raises WireError: it is too large, or other nodes would refuse it."""
    marks = [_Marks(one.name, list(one.p_correct), list(one.rewards)) for one in feedback]
    try:
        plain = encode(msgspec.convert(marks, _Feedback, from_attributes=True))
        _require_whole(_FEEDBACK.decode(plain))
    except UNREADABLE as error:
        raise WireError(Reason.MALFORMED, str(error)) from error
    return pack_body(plain)


def unpack_feedback(body: object, announcement: Announcement) -> tuple[Marks, ...]:
    """The feedback of an announced body. Raises WireError."""
    found = decode_exactly(_FEEDBACK, unpack_body(body, announcement))
    _require_whole(found)
    return tuple(
        Marks(name=one.proposal_id, p_correct=tuple(one.p_correct), rewards=tuple(one.rewards)) for one in found
    )


def _require_whole(feedback: Sequence[_Marks]) -> None:
    """Raises WireError: an attempt lacks one of its numbers, or a proposal comes twice."""
    if any(len(one.p_correct) != len(one.rewards) for one in feedback):
        raise WireError(Reason.MALFORMED, "as many rewards as probabilities are needed")
    if len({one.proposal_id for one in feedback}) != len(feedback):
        raise WireError(Reason.MALFORMED, "a proposal comes twice")
