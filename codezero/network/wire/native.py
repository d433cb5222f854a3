"""The rollouts of a peer in a round, in the node's own format: a body that an announcement names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from codezero.network.wire.announcement import Announcement
from codezero.network.wire.body import pack_body, unpack_body
from codezero.network.wire.codec import (
    MAX_GROUPS,
    UNREADABLE,
    Count,
    ModelId,
    Reason,
    Text,
    WireError,
    decode_exactly,
    encode,
)
from codezero.types import FinishReason, Rollout, RolloutGroup, Task, TaskOrigin


class _Task(Struct):
    origin: TaskOrigin
    question: Text
    tests: Text
    difficulty: Annotated[int, Meta(ge=1, le=5)] | None


class _Rollout(Struct):
    text: Text
    finish: FinishReason


class _Group(Struct):
    model_id: ModelId
    policy_version: Count
    task: _Task
    rollouts: Annotated[list[_Rollout], Meta(min_length=1, max_length=MAX_GROUPS)]


_Groups = Annotated[list[_Group], Meta(max_length=MAX_GROUPS)]
_GROUPS = Decoder(_Groups)


def pack_groups(groups: Sequence[RolloutGroup]) -> bytes:
    """The body of an announcement. Raises WireError: it is too large, or other nodes would refuse it."""
    return pack_body(encode_groups(groups))


def unpack_groups(body: object, announcement: Announcement) -> tuple[RolloutGroup, ...]:
    """The groups of an announced body. Raises WireError."""
    return tuple(
        RolloutGroup(
            peer_id=announcement.peer_id,
            model_id=group.model_id,
            policy_version=group.policy_version,
            task=Task(**msgspec.structs.asdict(group.task)),
            rollouts=tuple(Rollout(text=rollout.text, finish=rollout.finish) for rollout in group.rollouts),
        )
        for group in decode_exactly(_GROUPS, unpack_body(body, announcement))
    )


def encode_groups(groups: Sequence[RolloutGroup]) -> bytes:
    """What is sent of groups, uncompressed. Raises WireError: other nodes would refuse it."""
    try:
        return encode(msgspec.convert(list(groups), _Groups, from_attributes=True))
    except UNREADABLE as error:
        raise WireError(Reason.MALFORMED, str(error)) from error
