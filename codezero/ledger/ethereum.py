"""Imports of eth-account and eth-keyfile, when a chain is first used.

They import py_ecc, which raises the interpreter's recursion limit to 100,000: more than a thread's stack can hold. Left
so, a deeply nested message of a peer would end the node's process where it now raises RecursionError.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def local_account(key: bytes) -> Any:
    """eth-account's LocalAccount, which signs. Raises ValueError: no private key."""
    with recursion_limit_kept():
        from eth_account import Account
        from eth_utils.exceptions import ValidationError

    try:
        return Account.from_key(key)
    except ValidationError as error:  # which of the two depends on eth-keys' backend
        raise ValueError(str(error)) from error


def keyfile() -> ModuleType:
    with recursion_limit_kept():
        import eth_keyfile.keyfile

    return eth_keyfile.keyfile
