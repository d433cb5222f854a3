"""Files that another process appends to, and now and then replaces by a new one."""

from __future__ import annotations

import os
from typing import BinaryIO

_HEAD_BYTES = 512
"""The number of first bytes by which a file is known beside its inode."""


class LastFile:
    """The file that was read last from a path. Its inode alone does not tell it from a new one, which may get that of
    an old one, nor do its first bytes: a restarted node writes a file anew that begins alike."""

    def __init__(self) -> None:
        self._inode, self._head = -1, b""

    def is_replaced_by(self, file: BinaryIO, offset: int) -> bool:
        """Returns whether `file`, just opened, is another one or was cut below `offset`; it is the last one then."""
        head, found = file.read(_HEAD_BYTES), os.fstat(file.fileno())
        is_same = found.st_ino == self._inode and head.startswith(self._head) and found.st_size >= offset
        self._inode, self._head = found.st_ino, head
        return not is_same
