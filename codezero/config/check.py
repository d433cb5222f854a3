"""Checks of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codezero.errors import ConfigError


def require(holds: bool, key: str, value: object, fix: str) -> None:
    """Raises ConfigError, with the key, the value and the fix, if the condition does not hold."""
    if not holds:
        raise ConfigError(f"{key}={value} is not possible: {fix}")


def refuse(settings: Sequence[str], reserved: Mapping[str, str], where: str) -> None:
    """Raises ConfigError: one of the `key=value` settings has a key of `reserved`, whose value says what to do."""
    for setting in settings:
        key = setting.partition("=")[0]
        if key in reserved:
            raise ConfigError(f"{setting} is not possible {where}: {reserved[key]}")
