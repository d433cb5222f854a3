"""Imports eth-account and eth-keyfile when a chain is first used, and keeps the interpreter's recursion limit.

They import py_ecc, which raises the limit to 100,000: more than a thread's stack can hold. With that limit a deeply
nested message of a peer would end the node's process instead of raising RecursionError.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """Restores the recursion limit at the end."""
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def local_account(key: bytes) -> Any:
    """Returns eth-account's LocalAccount of a key, which signs. Raises ValueError: it is not a private key."""
    with recursion_limit_kept():
        from eth_account import Account
        from eth_utils.exceptions import ValidationError

    try:
        return Account.from_key(key)
    except ValidationError as error:  # eth-keys raises this or ValueError, by its backend
        raise ValueError(str(error)) from error


def keyfile() -> ModuleType:
    """Returns the module `eth_keyfile.keyfile`."""
    with recursion_limit_kept():
        import eth_keyfile.keyfile

    return eth_keyfile.keyfile
