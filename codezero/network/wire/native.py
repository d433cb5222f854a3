"""The rollouts of a peer in a round, in the native format: a body that an announcement names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.msgpack import Decoder

from codezero.network.wire.announcement import Announcement
from codezero.network.wire.body import MAX_EXTENSION_BYTES, BodyItem, pack_body, unpack_items
from codezero.network.wire.codec import (
    MAX_GROUPS,
    Count,
    ModelId,
    Name,
    Reason,
    Text,
    WireError,
    convert_each,
    converted,
    decode,
    encode,
    known_level,
)
from codezero.network.wire.fitting import most_that_fit
from codezero.types import FinishReason, Rollout, RolloutGroup, Task, TaskOrigin

ENVIRONMENT = "environment"
"""The name of the extension that stays with its group, which means nothing without it."""
LOGPROBS = "logprobs"
"""The name of the extension that goes where a record is too large."""

# Fields to which a later version may add words are decoded as any word.


class _Task(Struct):
    origin: Name
    question: Text
    tests: Text
    difficulty: Count | None


class _Rollout(Struct):
    text: Text
    finish: Name


class _Group(BodyItem):
    model_id: ModelId
    policy_version: Count
    task: _Task
    rollouts: Annotated[list[_Rollout], Meta(min_length=1, max_length=MAX_GROUPS)]


_Groups = Annotated[list[_Group], Meta(max_length=MAX_GROUPS)]
_GROUPS = Decoder(_Groups)
_NAME = Decoder(Name)
_LOGPROBS = Decoder(Annotated[list[bytes | None], Meta(max_length=MAX_GROUPS)])


def pack_groups(groups: Sequence[RolloutGroup]) -> bytes:
    """Encodes groups as a body. Raises WireError: it is too large, or other nodes would refuse it."""
    items = _to_items(groups)
    for item, group in zip(items, groups, strict=True):
        logprobs = encode([one.logprobs or None for one in group.rollouts])
        if any(one.logprobs for one in group.rollouts) and len(logprobs) <= MAX_EXTENSION_BYTES:
            item.extensions[LOGPROBS] = Raw(logprobs)
    return pack_items(items)


def pack_items(items: Sequence[BodyItem]) -> bytes:
    """Encodes all items as a body; as many of the first ones as fit keep their log-probabilities.

    Raises WireError: without any it is still too large, or other nodes would refuse it.
    """
    bare = [_without_logprobs(item) for item in items]
    return most_that_fit(lambda count: pack_body(encode([*items[:count], *bare[count:]])), len(items))[0]


def unpack_groups(body: bytes, announcement: Announcement) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
    """Returns an announced body's groups, and a reason for each one dropped. Raises WireError: none can be used."""
    items = unpack_items(body, announcement, _GROUPS)
    return convert_each(items, lambda item: _to_group(item, announcement.peer_id))


def encode_groups(groups: Sequence[RolloutGroup]) -> bytes:
    """Encodes groups without extensions and compression. Raises WireError: other nodes would refuse them."""
    return encode(_to_items(groups))


def _to_items(groups: Sequence[RolloutGroup]) -> list[_Group]:
    """Converts groups to items. Raises WireError: other nodes would refuse them."""
    items: list[_Group] = converted(groups, _Groups)
    for item, group in zip(items, groups, strict=True):
        known_level(item.task.difficulty)
        if group.task.environment:
            item.extensions = {ENVIRONMENT: Raw(encode(group.task.environment))}
    return items


def _without_logprobs(item: BodyItem) -> BodyItem:
    kept = {name: value for name, value in item.extensions.items() if name != LOGPROBS}
    return msgspec.structs.replace(item, extensions=kept)


def _to_group(item: _Group, peer_id: str) -> RolloutGroup:
    """Converts an item to a group. Raises WireError: it has a word that this version does not know, or is of an
    environment without a name."""
    try:
        task = Task(
            origin=TaskOrigin(item.task.origin),
            question=item.task.question,
            tests=item.task.tests,
            difficulty=known_level(item.task.difficulty),
            environment=_environment(item),
        )
        rollouts = tuple(
            Rollout(text=one.text, finish=FinishReason(one.finish), logprobs=logprobs)
            for one, logprobs in zip(item.rollouts, _logprobs(item), strict=True)
        )
    except ValueError as error:
        raise WireError(Reason.UNKNOWN_VALUE, str(error)) from error
    return RolloutGroup(
        peer_id=peer_id,
        model_id=item.model_id,
        policy_version=item.policy_version,
        task=task,
        rollouts=rollouts,
        signed=True,
    )


def _environment(item: _Group) -> str:
    is_own = item.task.origin != TaskOrigin.ENVIRONMENT.value
    return "" if is_own else decode(_NAME, item.extensions.get(ENVIRONMENT, Raw()))


def _logprobs(item: _Group) -> list[bytes]:
    """Returns the bytes that an item has for each rollout, whatever they are; empty ones if it has no such list."""
    try:
        found = decode(_LOGPROBS, item.extensions.get(LOGPROBS, Raw()))
    except WireError:
        found = []
    return [one or b"" for one in found] if len(found) == len(item.rollouts) else [b""] * len(item.rollouts)
