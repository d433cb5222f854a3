"""The node under examination: the one that a configuration would start here, or has started."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codezero.config import NodeConfig, checkout
from codezero.observe.roles import SOLVER, folder_of
from codezero.publish.tokens import TOKEN_ENVS
from codezero.runtime import state
from codezero.views.runs import roles_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedNode:
    config: NodeConfig
    environment: Mapping[str, str]
    settings: Sequence[str] = ()
    """The `key=value` settings that `config` was loaded with."""
    skews: list[tuple[str, float]] = field(default_factory=list)
    """Pairs of a server's name and the seconds by which its clock is ahead of this machine's, from replies to other
    checks."""

    @property
    def child_environment(self) -> dict[str, str]:
        """The environment for programs that checks start, without the hub's tokens, which no other program may see."""
        return {name: value for name, value in self.environment.items() if name not in TOKEN_ENVS}

    def said_by(self, program: str, *arguments: str, limit_s: float) -> str | None:
        """Returns the output of a program of this machine; None if it is missing, fails or takes too long."""
        path = shutil.which(program, path=self.environment.get("PATH"))
        if path is None:
            return None
        try:
            return subprocess.run(
                [path, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
                env=self.child_environment,
                stdin=subprocess.DEVNULL,
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError):
            return None

    @property
    def state_dir(self) -> Path:
        return Path(self.config.state_dir).expanduser().absolute()

    @property
    def status_command(self) -> str:
        """The command that shows the nodes of this state folder."""
        return f"{checkout.COMMAND} status {shlex.quote(str(self.state_dir))}"

    @property
    def roles(self) -> list[str]:
        """The roles that nodes with this state folder have played; a solver's if there is none yet."""
        return roles_in(self.state_dir) or [SOLVER]

    @property
    def is_running(self) -> bool:
        """True if the examined node runs: that of the first of `roles`, whose settings are taken."""
        return state.holder(folder_of(self.state_dir, self.roles[0])) is not None

    @property
    def log_dir(self) -> Path:
        return Path(self.config.tracking.log_dir).expanduser().absolute()

    @property
    def cache_dir(self) -> Path:
        return Path(self.config.model.cache_dir).expanduser().absolute()
