"""The small signed record by which a peer vouches for what it publishes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from codezero.identity.key import Identity, is_signed_by, peer_id_of
from codezero.network.wire.codec import Count, Name, Reason, WireError, decode_exactly, encode, sized

VERSION = 2
"""First byte of an announcement; it speaks for what is announced too. Of version 1 all is read that there is."""
MAX_ANNOUNCEMENT_BYTES = 2048

ROLLOUTS, PROPOSALS = "rollouts", "proposals"
"""Topics: what an announcement is of, so that none is taken for one of something else."""

_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_PREFIX = b"codezero announcement\0"
"""Signed along with the version, so that no signature of this key made for another purpose fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """Who published what, for which topic and round of which swarm, and when."""

    swarm: Name
    topic: Annotated[str, Meta(pattern=rf"^(rollouts|proposals|feedback/{_BASE58}{{1,64}})\Z")]
    """`ROLLOUTS`, `PROPOSALS`, or what `feedback_to` gives."""
    peer_id: Name
    round: Count
    """0 for what belongs to no round."""
    published_at_s: Annotated[float, Meta(ge=0, le=1e11)]
    """Unix time by the peer's clock."""
    expires_at_s: Annotated[float, Meta(ge=0, le=1e11)]
    """When the record leaves the DHT: signed, so that nobody can bring back an old one in place of a new one."""
    instance: Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
    """8 random bytes in hex, drawn when the process starts: tells two live nodes with one key apart."""
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """SHA-256 of what is announced."""
    size: Count
    """Bytes of what is announced."""


class _Envelope(Struct):
    content: bytes
    public_key: bytes
    signature: bytes


def feedback_to(proposer: str) -> str:
    """The topic of feedback on what a peer has proposed."""
    return f"feedback/{proposer}"


_ENVELOPE = Decoder(_Envelope)
_CONTENT = Decoder(Announcement)


def sign_announcement(announcement: Announcement, identity: Identity, version: int = VERSION) -> bytes:
    """Raises WireError: other nodes would refuse it."""
    content, first = encode(announcement), bytes([version])
    signature = identity.sign(_PREFIX + first + content)
    envelope = _Envelope(content=content, public_key=identity.public_key, signature=signature)
    raw = first + encode(envelope)
    read_announcement(raw)
    return raw


def read_announcement(
    raw: object,
    *,
    swarm: str | None = None,
    topic: str | None = None,
    peer_id: str | None = None,
    round_number: int | None = None,
) -> Announcement:
    """The announcement that a peer has signed, in version `raw[0]`; where a swarm, topic, peer or round is given, it
    must be that one. Raises WireError."""
    raw = sized(raw, MAX_ANNOUNCEMENT_BYTES)
    if not raw or raw[0] not in (1, VERSION):
        raise WireError(
            Reason.WRONG_VERSION, f"version {raw[0] if raw else 'missing'}, this node reads versions 1 and {VERSION}"
        )
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
    """Raises WireError: the announcement is of other content, so its signature does not cover this."""
    if len(content) != announcement.size or hashlib.sha256(content).digest() != announcement.digest:
        raise WireError(Reason.BAD_SIGNATURE, f"{announcement.peer_id} has announced other bytes")
