"""How a section refuses a value."""

from __future__ import annotations

from codezero.errors import ConfigError


def require(holds: bool, key: str, value: object, fix: str) -> None:
    """Raises ConfigError: the condition does not hold. The message names the key, the value and the fix."""
    if not holds:
        raise ConfigError(f"{key}={value} is not possible: {fix}")
