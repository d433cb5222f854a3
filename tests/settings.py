"""Settings as plain values by their key."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

from codezero.config import NodeConfig


def by_key(config: NodeConfig) -> dict[str, Any]:
    """Every setting of a configuration, as `train.epsilon`."""

    def plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: value.value if isinstance(value, Enum) else value for name, value in items}

    return leaves(dataclasses.asdict(config, dict_factory=plain))


def leaves(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a tree of mappings, by the names that lead to them."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found
