"""The names of all settings, and of the choices of each group. It needs no package, so a mistake is told before any is
installed."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from codezero.config import NodeConfig, checkout
from codezero.errors import ConfigError

CONFIG_DIR_ENV = "CODEZERO_CONFIG_DIR"
SUFFIXES = (".yaml", ".yml")
"""The ends of a swarm file's name."""


def config_dir() -> Path:
    """Returns the folder of the YAML files: CODEZERO_CONFIG_DIR, else the shipped one. Raises ConfigError: it is in the
    home of nobody."""
    own = os.environ.get(CONFIG_DIR_ENV)
    try:
        return Path(own).expanduser().absolute() if own else checkout.CONFIGS
    except RuntimeError as error:
        raise ConfigError(f"{CONFIG_DIR_ENV}={own} is not possible: there is no such user") from error


def is_swarm_file(choice: str) -> bool:
    """Returns True if `swarm=CHOICE` means a file and not a shipped choice."""
    return choice.lower().endswith(SUFFIXES)


def check_names(overrides: Sequence[str]) -> None:
    """Raises ConfigError: an override is no `key=value`, or has an unknown key or an unknown choice of a group."""
    folder = config_dir() if config_dir().is_dir() else checkout.CONFIGS  # a volume is filled at the first start
    groups = {
        group.name: sorted(file.stem for file in group.glob("*.yaml")) for group in folder.iterdir() if group.is_dir()
    }
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"'{override}' is not a setting: write it as key=value, such as train.learning_rate=2e-6")
        if key not in groups and key not in known():
            raise ConfigError(unknown(key, sorted(groups)))
        if key in groups and value not in groups[key] and not (key == "swarm" and is_swarm_file(value)):
            or_file = "; a swarm file ends in .yaml" if key == "swarm" else ""
            raise ConfigError(f"{key}={value} is not one of the shipped choices: {', '.join(groups[key])}{or_file}")


def unknown(key: str, groups: Sequence[str] = (), where: str = "") -> str:
    """Returns the message for a key that is no setting, with the nearest names of settings and groups."""
    near = difflib.get_close_matches(key, [*known(), *groups], n=2)
    all_keys = f"see `{checkout.COMMAND} run --show-config` for all keys"
    return f"unknown setting {key}{where}: " + (f"did you mean {' or '.join(near)}?" if near else all_keys)


@cache
def known() -> frozenset[str]:
    """Returns the keys of all settings."""
    return frozenset(leaves(NodeConfig()))


def leaves(section: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the values of all settings by key."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            found |= leaves(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found
