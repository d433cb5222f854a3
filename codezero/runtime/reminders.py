"""Warnings of a problem that lasts: one of each kind an hour."""

from __future__ import annotations

import math
import time

REMIND_S = 3600.0
"""Seconds between two warnings of the same kind."""


class Reminders:
    """The times at which warnings of each kind were given."""

    def __init__(self) -> None:
        self._given_at_s: dict[str, float] = {}  # monotonic

    def is_due(self, kind: str) -> bool:
        """Returns True, and counts the warning as given, unless there was one of its kind in the last REMIND_S."""
        now_s = time.monotonic()
        if now_s - self._given_at_s.get(kind, -math.inf) < REMIND_S:
            return False
        self._given_at_s[kind] = now_s
        return True
