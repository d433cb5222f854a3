"""What is examined: the node that a configuration would start here, or has started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codezero.config import NodeConfig
from codezero.publish.tokens import TOKEN_ENVS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    config: NodeConfig
    environment: Mapping[str, str]
    settings: Sequence[str] = ()
    """What `config` was loaded with."""
    skews: list[tuple[str, float]] = field(default_factory=list)
    """Of each server that told its time in passing: who, and by how many seconds it is ahead of this machine."""

    @property
    def child_environment(self) -> dict[str, str]:
        """For programs that are started: without the tokens of the hub, which no other program is to see."""
        return {name: value for name, value in self.environment.items() if name not in TOKEN_ENVS}

    @property
    def state_dir(self) -> Path:
        return Path(self.config.state_dir).expanduser().absolute()

    @property
    def log_dir(self) -> Path:
        return Path(self.config.tracking.log_dir).expanduser().absolute()

    @property
    def cache_dir(self) -> Path:
        return Path(self.config.model.cache_dir).expanduser().absolute()
