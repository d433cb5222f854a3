"""Bounded msgpack, which both formats use, and the error of a record that is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Raw
from msgspec.msgpack import Decoder

from codezero.config.swarm import MAX_GENERATIONS
from codezero.proposals import LEVELS

MAX_RECORD_BYTES = 256 * 1024
"""The most bytes of a record in the DHT: a native body, or all that a peer publishes in GenRL's format."""
MAX_GROUPS = MAX_GENERATIONS
"""The most groups in a record, and rollouts in a group."""
MAX_TEXT_CHARS = 2**16
"""The most characters of a question, of its tests, or of a rollout."""

Count = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
ModelId = Annotated[str, Meta(max_length=256)]
Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""All errors that a decoder raises on hostile bytes."""

_S = TypeVar("_S")
_T = TypeVar("_T")


class Reason(str, Enum):
    """The reason why something of a peer is dropped, with its name in reports."""

    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    UNKNOWN_VALUE = "unknown_value"
    """A kind of task, an end of a rollout or a difficulty that this version does not know; only its item is dropped."""
    WRONG_VERSION = "wrong_version"
    BAD_SIGNATURE = "bad_signature"
    WRONG_PEER = "wrong_peer"
    WRONG_SWARM = "wrong_swarm"
    WRONG_ROUND = "wrong_round"
    WRONG_TOPIC = "wrong_topic"
    STALE = "stale"
    DUPLICATE = "duplicate"
    GROUP_SIZE = "group_size"
    TOO_LONG = "too_long"
    UNKNOWN_TASK = "unknown_task"
    """With `swarm.tasks=known`: the task is not one that this node could draw."""
    UNLISTED_TASK = "unlisted_task"
    """The same for a task that is said to be of a dataset which this node has not listed to its end yet."""
    UNKNOWN_ENVIRONMENT = "unknown_environment"
    """The task is of an environment that is not among `tasks.modules`."""
    BANNED = "banned"
    OWN_KEY = "own_key"
    UNKNOWN_PROPOSAL = "unknown_proposal"
    UNAVAILABLE = "unavailable"
    HOSTILE_ADDRESS = "hostile_address"


class WireError(Exception):
    """A record cannot be used or, when packing, sent. It is counted by its reason and never reaches a user."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason = reason
        self.detail = ascii(detail[:200])[1:-1]  # it may quote a peer, and is logged
        super().__init__(f"{reason.value}: {self.detail}")


def sized(raw: bytes, limit: int) -> bytes:
    """Returns `raw`. Raises WireError: it is too long."""
    if len(raw) > limit:
        raise WireError(Reason.OVERSIZED, f"{len(raw)} bytes, {limit} are allowed")
    return raw


def encode(value: object) -> bytes:
    """Encodes a value. Raises WireError: a text is not valid Unicode, or a number has no encoding."""
    try:
        return msgspec.msgpack.encode(value)
    except (UnicodeError, OverflowError) as error:
        raise WireError(Reason.MALFORMED, str(error)) from error


def decode(decoder: Decoder[_T], raw: bytes | Raw) -> _T:
    """Decodes a value. Raises WireError: it is not of the decoder's type."""
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        raise WireError(Reason.MALFORMED, str(error)) from error


def converted(values: Sequence[object], kind: Any) -> Any:
    """Returns own values as a list of the schema's type. Raises WireError: other nodes would refuse them."""
    try:
        return msgspec.convert(list(values), kind, from_attributes=True)
    except UNREADABLE as error:
        raise WireError(Reason.MALFORMED, str(error)) from error


def convert_each(entries: Iterable[_S], convert: Callable[[_S], _T]) -> tuple[tuple[_T, ...], tuple[Reason, ...]]:
    """Returns what `convert` makes of the entries, and the reason of each WireError that it raises."""
    found, dropped = [], []
    for entry in entries:
        try:
            found.append(convert(entry))
        except WireError as error:
            dropped.append(error.reason)
    return tuple(found), tuple(dropped)


def known_level(difficulty: int | None) -> int | None:
    """Returns `difficulty`. Raises WireError: there is no such difficulty."""
    if difficulty is not None and not 1 <= difficulty <= len(LEVELS):
        raise WireError(Reason.UNKNOWN_VALUE, f"difficulty {difficulty}, there are 1 to {len(LEVELS)}")
    return difficulty


def decode_exactly(decoder: Decoder[_T], raw: bytes) -> _T:
    """Decodes like `decode`, but also refuses unknown or repeated fields and any other encoding of the same value."""
    value = decode(decoder, raw)
    if encode(value) != raw:
        raise WireError(Reason.MALFORMED, "it does not encode back to the same bytes: unknown or repeated fields?")
    return value
