"""Directories as hivemind sends them, read without hivemind's own decoder.

That one follows extension types inside extension types down to the end of the C stack, so that one kilobyte from a
stranger would end this process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Raw
from msgspec.msgpack import Decoder, Ext

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""All that a msgpack decoder raises on hostile bytes."""
_EXT_CODE = 0x50
"""Under which hivemind's serializer packs a DictionaryDHTValue, as [max size, latest expiration, entries]."""
MAX_SENT_ENTRIES = 4096
"""A directory with more is not read at all. Our own servers keep 64; those of GenRL's nodes have no limit."""
MAX_SUBKEY_CHARS = 128
"""Subkeys are peer ids, which have about 50."""

Packed = tuple[str, bytes, float]
"""Subkey, value, and when it expires in Unix time."""

_EXT = Decoder(Ext)
_DIRECTORY = Decoder(tuple[Raw, Raw, Annotated[list[Raw], Meta(max_length=MAX_SENT_ENTRIES)]])
_ENTRY = Decoder(tuple[Annotated[str, Meta(max_length=MAX_SUBKEY_CHARS)], bytes, float])
_SUBKEY = Decoder(str)


def read_dictionary(raw: bytes) -> list[Packed]:
    """The entries that can be read; one that cannot costs only itself, what is no directory gives none."""
    try:
        outer = _EXT.decode(raw)
        entries = _DIRECTORY.decode(outer.data)[2] if outer.code == _EXT_CODE else []
    except UNREADABLE:
        return []
    found = []
    for entry in entries:
        try:
            found.append(_ENTRY.decode(entry))
        except UNREADABLE:
            continue
    return found


def pack_dictionary(entries: Iterable[Packed]) -> bytes:
    """In the bytes that hivemind's serializer gives."""
    entries = list(entries)
    latest_s = max((expires_at_s for _, _, expires_at_s in entries), default=-math.inf)
    return msgspec.msgpack.encode(Ext(_EXT_CODE, msgspec.msgpack.encode([math.inf, latest_s, entries])))


def read_subkey(tag: bytes) -> str | None:
    """The name of an entry in a request to store it; None for anything but a text of proper length."""
    try:
        subkey = _SUBKEY.decode(tag)
    except UNREADABLE:
        return None
    return subkey if len(subkey) <= MAX_SUBKEY_CHARS else None
