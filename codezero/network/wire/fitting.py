"""Fits a record into its size: drops log-probabilities first, and only then items."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from codezero.network.wire.body import BodyItem, pack_body
from codezero.network.wire.codec import WireError, encode

logger = logging.getLogger(__name__)

ENVIRONMENT = "environment"
"""The name of the extension that stays with its group, which means nothing without it."""
LOGPROBS = "logprobs"
"""The name of the extension that goes where a record is too large."""

T = TypeVar("T")


def fit(pack: Callable[[Sequence[T]], bytes], items: Sequence[T]) -> tuple[bytes | None, Sequence[T]]:
    """Returns a record of as many of the first items as fit, and these items; (None, ()) if there are none.

    Items that cannot be sent even alone are left out.
    """
    try:
        return (pack(items), items) if items else (None, ())
    except WireError:
        sendable = [item for item in items if _can_be_sent(pack, item)]
    record, count = _most(lambda count: pack(sendable[:count]), len(sendable))
    return (record, sendable[:count]) if count else (None, ())


def pack_items(items: Sequence[BodyItem]) -> bytes:
    """Encodes all items as a body; as many of the first ones as fit keep their log-probabilities.

    Raises WireError: without any it is still too large, or other nodes would refuse it.
    """
    bare = [_without_logprobs(item) for item in items]
    return _most(lambda count: pack_body(encode([*items[:count], *bare[count:]])), len(items))[0]


def _most(pack: Callable[[int], bytes], most: int) -> tuple[bytes, int]:
    """Returns the record of the largest count up to `most` that can be packed, by bisection, and that count. Raises
    WireError: 0 cannot be packed."""
    try:
        return pack(most), most
    except WireError:
        record, packed, refused = pack(0), 0, most
    while refused - packed > 1:
        middle = (packed + refused) // 2
        try:
            record, packed = pack(middle), middle
        except WireError:
            refused = middle
    return record, packed


def _without_logprobs(item: BodyItem) -> BodyItem:
    kept = {name: value for name, value in item.extensions.items() if name != LOGPROBS}
    return msgspec.structs.replace(item, extensions=kept)


def _can_be_sent(pack: Callable[[Sequence[T]], bytes], item: T) -> bool:
    try:
        pack([item])
    except WireError as error:
        logger.warning("not published: %s. Nothing has to be done: the rest is", error)
        return False
    return True
