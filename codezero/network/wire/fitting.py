"""Fits a record into its size by leaving out the last items."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from codezero.network.wire.codec import WireError

logger = logging.getLogger(__name__)

T = TypeVar("T")


def fit(pack: Callable[[Sequence[T]], bytes], items: Sequence[T]) -> tuple[bytes | None, int]:
    """Returns a record of as many of the first items as fit, and their number; (None, 0) if there are none.

    Items that cannot be sent even alone are left out.
    """
    try:
        return (pack(items), len(items)) if items else (None, 0)
    except WireError:
        sendable = [item for item in items if _can_be_sent(pack, item)]
    record, count = most_that_fit(lambda count: pack(sendable[:count]), len(sendable))
    return (record, count) if count else (None, 0)


def most_that_fit(pack: Callable[[int], bytes], most: int) -> tuple[bytes, int]:
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


def _can_be_sent(pack: Callable[[Sequence[T]], bytes], item: T) -> bool:
    try:
        pack([item])
    except WireError as error:
        logger.warning("not published: %s. Nothing has to be done: the rest is", error)
        return False
    return True
