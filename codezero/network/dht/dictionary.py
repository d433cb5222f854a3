"""Decodes and encodes directories as hivemind sends them, without hivemind's own decoder.

That one follows nested extension types until the C stack is exhausted, so that one hostile kilobyte would end this
process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, Raw
from msgspec.msgpack import Decoder, Ext

from codezero.network.wire.codec import UNREADABLE

_EXT_CODE = 0x50
"""The msgpack extension type of hivemind's DictionaryDHTValue: [max size, latest expiration, entries]."""
MAX_SENT_ENTRIES = 4096
"""The most entries of a directory; a larger one is not read. codezero's servers keep 64, GenRL's have no limit."""
MAX_SUBKEY_CHARS = 128
"""The most characters of a subkey; peer ids have about 50."""

Packed = tuple[str, bytes, float]
"""A subkey, its value, and the Unix time at which it expires."""

_EXT = Decoder(Ext)
_DIRECTORY = Decoder(tuple[Raw, Raw, Annotated[list[Raw], Meta(max_length=MAX_SENT_ENTRIES)]])
_Subkey = Annotated[str, Meta(max_length=MAX_SUBKEY_CHARS)]
_ENTRY = Decoder(tuple[_Subkey, bytes, float])
_SUBKEY = Decoder(_Subkey)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEntry:
    """An entry of a directory as one replica has it, unchecked."""

    value: bytes
    expires_at_s: float
    witness: str
    """The peer id of that replica."""
    address: str | None
    """The address from which that replica says that it got it; None if it does not say."""


def read_dictionary(raw: bytes, most: int | None = None) -> list[Packed]:
    """Returns the entries of a directory that can be decoded, of the first `most`; none if it is not a directory."""
    try:
        outer = _EXT.decode(raw)
        entries = _DIRECTORY.decode(outer.data)[2] if outer.code == _EXT_CODE else []
    except UNREADABLE:
        return []
    found = []
    for entry in entries[:most]:
        try:
            found.append(_ENTRY.decode(entry))
        except UNREADABLE:
            continue
    return found


def pack_dictionary(entries: Iterable[Packed]) -> bytes:
    """Encodes a directory as hivemind's serializer does."""
    entries = list(entries)
    latest_s = max((expires_at_s for _, _, expires_at_s in entries), default=-math.inf)
    return msgspec.msgpack.encode(Ext(_EXT_CODE, msgspec.msgpack.encode([math.inf, latest_s, entries])))


def read_subkey(tag: bytes) -> str | None:
    """Decodes the subkey in a request to store an entry; None if it is not text or too long."""
    try:
        return _SUBKEY.decode(tag)
    except UNREADABLE:
        return None
