"""The node's own format: an announcement, and the body that it names by SHA-256.

A body is one zstd frame of msgpack with all groups of a peer in a round. It says nothing about the peer or the round;
the announcement does, and its signature covers the body through the digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import zstandard
from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from codezero.network.wire.announcement import Announcement, require_announced
from codezero.network.wire.codec import (
    MAX_GROUPS,
    MAX_RECORD_BYTES,
    UNREADABLE,
    Count,
    ModelId,
    Reason,
    Text,
    WireError,
    decode_exactly,
    encode,
    sized,
)
from codezero.types import FinishReason, Rollout, RolloutGroup, Task, TaskOrigin

MAX_BODY_BYTES = 2 * 2**20
"""A body without its compression."""


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
    plain = encode_groups(groups)
    if len(plain) > MAX_BODY_BYTES:
        raise WireError(Reason.OVERSIZED, f"{len(plain)} bytes before compression, {MAX_BODY_BYTES} are allowed")
    return sized(zstandard.ZstdCompressor().compress(plain), MAX_RECORD_BYTES)


def unpack_groups(body: object, announcement: Announcement) -> tuple[RolloutGroup, ...]:
    """The groups of an announced body. Raises WireError."""
    body = sized(body, MAX_RECORD_BYTES)
    require_announced(body, announcement)
    return tuple(
        RolloutGroup(
            peer_id=announcement.peer_id,
            model_id=group.model_id,
            policy_version=group.policy_version,
            task=Task(**msgspec.structs.asdict(group.task)),
            rollouts=tuple(Rollout(text=rollout.text, finish=rollout.finish) for rollout in group.rollouts),
        )
        for group in decode_exactly(_GROUPS, _decompress(body))
    )


def encode_groups(groups: Sequence[RolloutGroup]) -> bytes:
    """What is sent of groups, uncompressed. Raises WireError: other nodes would refuse it."""
    try:
        return encode(msgspec.convert(list(groups), _Groups, from_attributes=True))
    except UNREADABLE as error:
        raise WireError(Reason.MALFORMED, str(error)) from error


def _decompress(body: bytes) -> bytes:
    """One zstd frame that says how large its content is; no more than that is allocated."""
    try:
        size = zstandard.frame_content_size(body)
        if not 0 <= size <= MAX_BODY_BYTES:
            raise WireError(Reason.OVERSIZED, f"{size} bytes without compression (-1: does not say)")
        plain: bytes = zstandard.ZstdDecompressor().decompress(body, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise WireError(Reason.MALFORMED, str(error)) from error
    return plain
