"""The format of GenRL 0.3.0: one msgpack record `{batch_id: [Payload, ...]}` for each peer and round.

In the `metadata` of each payload, which GenRL's nodes ignore, codezero's nodes put an announcement of this one group.
Its digest covers the task, the texts and how they ended. GenRL's own nodes sign nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.msgpack import Decoder

from codezero.identity.key import Identity
from codezero.network.wire.announcement import (
    GENRL_VERSION,
    ROLLOUTS,
    Announcement,
    read_announcement,
    require_announced,
    sign_announcement,
)
from codezero.network.wire.codec import (
    MAX_GROUPS,
    MAX_RECORD_BYTES,
    UNREADABLE,
    Count,
    ModelId,
    Reason,
    Text,
    WireError,
    decode,
    encode,
    sized,
)
from codezero.network.wire.native import encode_groups
from codezero.types import FinishReason, Rollout, RolloutGroup, Task, TaskOrigin

_PREFIX = b"codezero genrl\0"
"""The first bytes of what is signed. No zstd frame starts so, and no announcement of one format fits the other."""

_DATASETS = {encode(o.value): o for o in (TaskOrigin.MBPP, TaskOrigin.CODE_CONTESTS, TaskOrigin.PROPOSER)}


# The fields of a record that are read; others of GenRL's nodes are ignored.


class _Environment(Struct):
    question: Text
    test: Text | None = None
    metadata: Raw = Raw()


class _WorldState(Struct):
    environment_states: _Environment
    type: Literal["WorldState"] = msgspec.field(name="__type__")


class _Payload(Struct):
    world_state: _WorldState
    actions: Annotated[list[Text], Meta(min_length=1, max_length=MAX_GROUPS)]
    type: Literal["Payload"] = msgspec.field(name="__type__")
    metadata: Raw = Raw()


class _Signed(Struct):
    """The metadata of codezero nodes' payloads."""

    codezero: bytes
    """The signed announcement."""
    model_id: ModelId
    policy_version: Count
    finish: list[FinishReason]


_RECORD = Decoder(Annotated[dict[str, list[Raw]], Meta(max_length=MAX_GROUPS)])
_PAYLOAD = Decoder(_Payload)
_SIGNED = Decoder(_Signed)
_FIELDS = Decoder(dict[str, Raw])
_BYTES = Decoder(bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenrlRecord:
    """The content of a peer's record in GenRL's format."""

    groups: tuple[RolloutGroup, ...]
    dropped: tuple[Reason, ...]
    """The reason of each payload that gave no group."""
    announcement: Announcement | None
    """The announcement of a signed group that expires first; None if the peer does not sign."""


def pack_genrl(
    groups: Sequence[RolloutGroup],
    *,
    identity: Identity,
    swarm: str,
    round_number: int,
    published_at_s: float,
    expires_at_s: float,
    instance: str,
) -> bytes:
    """Encodes groups as GenRL does. Raises WireError: the record is too large, or other nodes would refuse it.

    GenRL's nodes know no built-in tasks, so these are sent as "mbpp", whose tasks are also functions tested by
    assertions. The difficulty is not sent.
    """
    if len(groups) > MAX_GROUPS:
        raise WireError(Reason.OVERSIZED, f"{len(groups)} groups, {MAX_GROUPS} are allowed")
    record: dict[str, list[object]] = {}
    for group in groups:
        origin = TaskOrigin.MBPP if group.task.origin is TaskOrigin.BUILTIN else group.task.origin
        sent = replace(group, task=Task(origin=origin, question=group.task.question, tests=group.task.tests))
        content = _signed_content(sent)
        announcement = Announcement(
            swarm=swarm,
            topic=ROLLOUTS,
            peer_id=identity.peer_id,
            round=round_number,
            published_at_s=published_at_s,
            expires_at_s=expires_at_s,
            instance=instance,
            digest=hashlib.sha256(content).digest(),
            size=len(content),
        )
        payload = _to_payload(sent, sign_announcement(announcement, identity, GENRL_VERSION))
        record.setdefault(sent.task.task_id, []).append(payload)
    return sized(encode(record), MAX_RECORD_BYTES)


def read_genrl(raw: bytes, peer_id: str, *, swarm: str, round_number: int) -> GenrlRecord:
    """Decodes the groups that a peer has published for a round; a payload that cannot be used is dropped alone.

    A signed payload must be by this peer, for this swarm and round. The peer of an unsigned one, as GenRL's are, is
    only known from its place in the DHT. Whoever can write there can also remove signatures, but who signs signs all:
    unsigned payloads beside signed ones are somebody else's.

    Raises WireError: the record as a whole cannot be read.
    """
    record = decode(_RECORD, sized(raw, MAX_RECORD_BYTES))
    if sum(map(len, record.values())) > MAX_GROUPS:
        raise WireError(Reason.OVERSIZED, f"more than {MAX_GROUPS} payloads")
    groups, dropped, announcements = [], [], []
    for batch_id, payloads in record.items():
        for encoded in payloads:
            try:
                payload = decode(_PAYLOAD, encoded)
                announcement = _announcement(payload, swarm=swarm, peer_id=peer_id, round_number=round_number)
                group = _to_group(payload, peer_id, announcement)
                if batch_id != group.task.task_id:
                    raise WireError(Reason.MALFORMED, "the batch id is not the MD5 of the question")
            except WireError as error:
                dropped.append(error.reason)
                continue
            groups.append(group)
            announcements += [] if announcement is None else [announcement]
    if announcements:
        dropped += [Reason.BAD_SIGNATURE for group in groups if not group.signed]
        groups = [group for group in groups if group.signed]
    first_to_expire = min(announcements, key=lambda one: one.expires_at_s, default=None)
    return GenrlRecord(groups=tuple(groups), dropped=tuple(dropped), announcement=first_to_expire)


def _announcement(payload: _Payload, *, swarm: str, peer_id: str, round_number: int) -> Announcement | None:
    """Returns a payload's announcement; None if it is unsigned. Raises WireError: the announcement is not valid."""
    raw = _field(payload.metadata, "codezero")
    if raw is None:
        return None
    return read_announcement(
        decode(_BYTES, raw),
        swarm=swarm,
        topic=ROLLOUTS,
        peer_id=peer_id,
        round_number=round_number,
        version=GENRL_VERSION,
    )


def _to_group(payload: _Payload, peer_id: str, announcement: Announcement | None) -> RolloutGroup:
    environment, texts = payload.world_state.environment_states, payload.actions
    dataset = _field(environment.metadata, "dataset") or b""
    task = Task(
        origin=_DATASETS.get(bytes(dataset), TaskOrigin.MBPP),  # both kinds of tests can be read anyway
        question=environment.question,
        tests=environment.test or "",
    )
    if announcement is None:
        # It is not known that these texts are finished, and training must not add an end token that was not sampled.
        signed = _Signed(codezero=b"", model_id="", policy_version=0, finish=[FinishReason.LENGTH] * len(texts))
    else:
        signed = decode(_SIGNED, payload.metadata)
    if len(signed.finish) != len(texts):
        raise WireError(Reason.MALFORMED, f"{len(signed.finish)} finish reasons for {len(texts)} texts")
    group = RolloutGroup(
        peer_id=peer_id,
        model_id=signed.model_id,
        policy_version=signed.policy_version,
        task=task,
        rollouts=tuple(Rollout(text=text, finish=finish) for text, finish in zip(texts, signed.finish, strict=True)),
        signed=announcement is not None,
    )
    if announcement is not None:
        require_announced(_signed_content(group), announcement)
    return group


def _to_payload(group: RolloutGroup, announcement: bytes) -> object:
    """Returns a payload, with keys in GenRL's order."""
    return {
        "__type__": "Payload",
        "world_state": {
            "__type__": "WorldState",
            "environment_states": {
                "question": group.task.question,
                "test": group.task.tests,
                "metadata": {"dataset": group.task.origin},
            },
            "opponent_states": None,
            "personal_states": None,
        },
        "actions": [rollout.text for rollout in group.rollouts],
        "metadata": {
            "codezero": announcement,
            "model_id": group.model_id,
            "policy_version": group.policy_version,
            "finish": [rollout.finish for rollout in group.rollouts],
        },
    }


def _signed_content(group: RolloutGroup) -> bytes:
    return _PREFIX + encode_groups([group])


def _field(raw: Raw, name: str) -> Raw | None:
    """Returns a field of a map, None if there is none: the value of a GenRL node may be no map at all."""
    try:
        return _FIELDS.decode(raw).get(name)
    except UNREADABLE:
        return None
