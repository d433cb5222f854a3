"""Announcements: small records by which peers sign what they publish."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from codezero.identity.key import Identity, is_signed_by, peer_id_of
from codezero.network.wire.codec import Count, Name, Reason, WireError, decode_exactly, encode, sized

VERSION, GENRL_VERSION = 2, 1
"""The first byte of an announcement: of a native body, and in a payload of GenRL's format."""
MAX_ANNOUNCEMENT_BYTES = 2048
"""The most bytes of a signed announcement."""

ROLLOUTS, PROPOSALS = "rollouts", "proposals"
"""Topics. An announcement is signed for one, so that it is valid in no other."""

_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_PREFIX = b"codezero announcement\0"
"""Signed together with the version, so that a signature of the same key for another purpose is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """The signed fields: publisher, content, topic, round, swarm and time."""

    swarm: Name
    topic: Annotated[str, Meta(pattern=rf"^(rollouts|proposals|feedback/{_BASE58}{{1,64}})\Z")]
    """`ROLLOUTS`, `PROPOSALS`, or a result of `feedback_to`."""
    peer_id: Name
    round: Count
    """The round's number; 0 for what belongs to no round."""
    published_at_s: Annotated[float, Meta(ge=0, le=1e11)]
    """The Unix time of publication by the peer's clock."""
    expires_at_s: Annotated[float, Meta(ge=0, le=1e11)]
    """The Unix time at which the record leaves the DHT, signed so that an old record cannot replace a newer one."""
    instance: Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
    """8 random bytes in hex, drawn when the process starts, which tell two live nodes with one key apart."""
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """The SHA-256 of what is announced."""
    size: Count
    """The length in bytes of what is announced."""


class _Envelope(Struct):
    content: bytes
    public_key: bytes
    signature: bytes


def feedback_to(proposer: str) -> str:
    """Returns the topic of feedback on a peer's proposals."""
    return f"feedback/{proposer}"


_ENVELOPE = Decoder(_Envelope)
_CONTENT = Decoder(Announcement)


def sign_announcement(announcement: Announcement, identity: Identity, version: int = VERSION) -> bytes:
    """Signs an announcement. Raises WireError: other nodes would refuse it."""
    content, first = encode(announcement), bytes([version])
    signature = identity.sign(_PREFIX + first + content)
    envelope = _Envelope(content=content, public_key=identity.public_key, signature=signature)
    raw = first + encode(envelope)
    read_announcement(raw, version=version)
    return raw


def read_announcement(
    raw: bytes,
    *,
    swarm: str | None = None,
    topic: str | None = None,
    peer_id: str | None = None,
    round_number: int | None = None,
    version: int = VERSION,
) -> Announcement:
    """Returns a signed announcement. Raises WireError: it is malformed or not properly signed, or for another version,
    swarm, topic, peer or round than is given."""
    if sized(raw, MAX_ANNOUNCEMENT_BYTES)[:1] != bytes([version]):
        raise WireError(Reason.WRONG_VERSION, f"version {raw[0] if raw else 'missing'}, only {version} is read here")
    envelope = decode_exactly(_ENVELOPE, raw[1:])
    announcement = decode_exactly(_CONTENT, envelope.content)
    if peer_id_of(envelope.public_key) != announcement.peer_id:
        raise WireError(Reason.WRONG_PEER, f"its key is not that of {announcement.peer_id}")
    if not is_signed_by(envelope.public_key, _PREFIX + raw[:1] + envelope.content, envelope.signature):
        raise WireError(Reason.BAD_SIGNATURE, f"{announcement.peer_id} has not signed it")
    for reason, found, wanted in (
        (Reason.WRONG_SWARM, announcement.swarm, swarm),
        (Reason.WRONG_TOPIC, announcement.topic, topic),
        (Reason.WRONG_PEER, announcement.peer_id, peer_id),
        (Reason.WRONG_ROUND, announcement.round, round_number),
    ):
        if wanted not in (None, found):
            raise WireError(reason, f"it was signed for {found}, not for {wanted}")
    return announcement


def require_announced(content: bytes, announcement: Announcement) -> None:
    """Raises WireError: the announcement is of other content than this, so its signature does not cover it."""
    if len(content) != announcement.size or hashlib.sha256(content).digest() != announcement.digest:
        raise WireError(Reason.BAD_SIGNATURE, f"{announcement.peer_id} has announced other bytes")
