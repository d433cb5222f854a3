"""The node's own format: an announcement, and the body that it names by SHA-256.

A body is one zstd frame of msgpack with all that a peer publishes at a time. It says nothing about the peer or the
topic; the announcement does, and its signature covers the body through the digest.
"""

from __future__ import annotations

import zstandard

from codezero.network.wire.announcement import Announcement, require_announced
from codezero.network.wire.codec import MAX_RECORD_BYTES, Reason, WireError, sized

MAX_BODY_BYTES = 2 * 2**20
"""A body without its compression."""


def pack_body(plain: bytes) -> bytes:
    """Raises WireError: it is too large."""
    if len(plain) > MAX_BODY_BYTES:
        raise WireError(Reason.OVERSIZED, f"{len(plain)} bytes before compression, {MAX_BODY_BYTES} are allowed")
    return sized(zstandard.ZstdCompressor().compress(plain), MAX_RECORD_BYTES)


def unpack_body(body: object, announcement: Announcement) -> bytes:
    """What was packed into an announced body. Raises WireError.

    It is one zstd frame that says how large its content is; no more than that is allocated.
    """
    body = sized(body, MAX_RECORD_BYTES)
    require_announced(body, announcement)
    try:
        size = zstandard.frame_content_size(body)
        if not 0 <= size <= MAX_BODY_BYTES:
            raise WireError(Reason.OVERSIZED, f"{size} bytes without compression (-1: does not say)")
        plain: bytes = zstandard.ZstdDecompressor().decompress(body, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise WireError(Reason.MALFORMED, str(error)) from error
    return plain
