"""Reading back what a node saved: plain values, each checked, so that a damaged state is named and never used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from codezero.errors import StateError
from codezero.proposals import LEVELS


def damaged(what: str) -> NoReturn:
    """Raises StateError."""
    raise StateError(f"the state in state_dir is damaged ({what}): restore the checkpoint, or give another state_dir")


def count(state: Any, key: str) -> int:
    """An integer of 0 or more. Raises StateError."""
    value = _field(state, key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        damaged(f"{key}={value!r:.80} is no count")
    return value


def level(state: Any, key: str = "level") -> int:
    """1 to 5. Raises StateError."""
    value = count(state, key)
    if not 1 <= value <= len(LEVELS):
        damaged(f"{key}={value} is no level")
    return value


def number(state: Any, key: str) -> float:
    """A finite number. Raises StateError."""
    value = _field(state, key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        damaged(f"{key}={value!r:.80} is no number")
    return float(value)


def text(state: Any, key: str) -> str:
    """Raises StateError."""
    value = _field(state, key)
    if not isinstance(value, str):
        damaged(f"{key}={value!r:.80} is no text")
    return value


def flag(state: Any, key: str) -> bool:
    """Raises StateError."""
    value = _field(state, key)
    if not isinstance(value, bool):
        damaged(f"{key}={value!r:.80} is neither true nor false")
    return value


def items(state: Any, key: str) -> list[Any]:
    """A list. Raises StateError."""
    value = _field(state, key)
    if not isinstance(value, list | tuple):
        damaged(f"{key}={value!r:.80} is no list")
    return list(value)


def _field(state: Any, key: str) -> Any:
    if not isinstance(state, Mapping) or key not in state:
        damaged(f"{key} is missing")
    return state[key]
