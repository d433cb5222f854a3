"""Bodies of the native format, each of which an announcement names by its SHA-256.

A body is one zstd frame of msgpack: a list of items, which are groups, proposals or feedback. Peer and topic are only
in the announcement, whose signature covers the body through the digest.

The last field of an item, `extensions`, has values by name, of which a reader uses the names that it knows; an empty
one is omitted.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import zstandard
from msgspec import Meta, Raw, Struct
from msgspec.msgpack import Decoder

from codezero.network.wire.announcement import Announcement, require_announced
from codezero.network.wire.codec import MAX_RECORD_BYTES, Name, Reason, WireError, decode_exactly, sized

MAX_BODY_BYTES = 2 * 2**20
"""The most bytes of a body before compression."""
MAX_EXTENSIONS = 16
"""The most extensions of one item."""
MAX_EXTENSION_BYTES = 2**17
"""The most bytes of an extension of an item: two bytes for each of 1,024 tokens of 64 rollouts."""


class BodyItem(Struct, kw_only=True, omit_defaults=True):
    """The field that all items have."""

    extensions: Annotated[dict[Name, Raw], Meta(max_length=MAX_EXTENSIONS)] = {}
    """Undecoded values by name (docs/wire.md), which may be of any type and depth."""


_Item = TypeVar("_Item", bound=BodyItem)


def pack_body(plain: bytes) -> bytes:
    """Compresses a body. Raises WireError: it is too large."""
    if len(plain) > MAX_BODY_BYTES:
        raise WireError(Reason.OVERSIZED, f"{len(plain)} bytes before compression, {MAX_BODY_BYTES} are allowed")
    return sized(zstandard.ZstdCompressor().compress(plain), MAX_RECORD_BYTES)


def unpack_items(body: bytes, announcement: Announcement, decoder: Decoder[list[_Item]]) -> list[_Item]:
    """Decodes the items of an announced body. Raises WireError: it is malformed or too large."""
    require_announced(sized(body, MAX_RECORD_BYTES), announcement)
    items = decode_exactly(decoder, _decompress(body))
    for item in items:
        for name, value in item.extensions.items():
            if len(memoryview(value)) > MAX_EXTENSION_BYTES:
                raise WireError(Reason.OVERSIZED, f"{len(memoryview(value))} bytes of {name}")
    return items


def _decompress(body: bytes) -> bytes:
    """Decompresses one zstd frame, allocating no more than the size that it states. Raises WireError: it is malformed,
    states no size, or is too large."""
    try:
        size = zstandard.frame_content_size(body)
        if not 0 <= size <= MAX_BODY_BYTES:
            raise WireError(Reason.OVERSIZED, f"{size} bytes without compression (-1: does not say)")
        plain: bytes = zstandard.ZstdDecompressor().decompress(body, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise WireError(Reason.MALFORMED, str(error)) from error
    return plain
