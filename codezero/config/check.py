"""Checks of settings."""

from __future__ import annotations

from codezero.errors import ConfigError


def require(holds: bool, key: str, value: object, fix: str) -> None:
    """Raises ConfigError, with the key, the value and the fix, if the condition does not hold."""
    if not holds:
        raise ConfigError(f"{key}={value} is not possible: {fix}")
