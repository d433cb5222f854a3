"""Settings of what a node records, and where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codezero.config.check import require


class LogFormat(Enum):
    text = "text"
    json = "json"


class Wandb(Enum):
    off = "off"
    offline = "offline"
    online = "online"


class TerminalView(Enum):
    auto = "auto"
    off = "off"


@dataclass
class TrackingConfig:
    log_dir: str = "logs"
    """Folder of rounds.jsonl and swarm.log."""
    level: str = "INFO"
    """Least severe level written to swarm.log."""
    log_format: LogFormat = LogFormat.text
    """Of swarm.log: text, or json with one object a line (time, level, logger, message, and exception if any)."""
    tensorboard: bool = False
    """Also write the rounds to log_dir/tensorboard; needs pip install 'codezero[tracking]'."""
    wandb: Wandb = Wandb.off
    """Weights & Biases: offline keeps runs in log_dir/wandb, without account or network (`wandb sync` uploads them),
    online sends them, with WANDB_API_KEY; needs pip install 'codezero[tracking]'."""
    wandb_project: str = "codezero"
    """The project that runs go to."""
    wandb_entity: str = ""
    """The user or team that owns it; empty takes the account's own."""
    wandb_name: str = ""
    """The run's name; empty takes the node's animal name."""
    prometheus_port: int = 0
    """Serve the latest round at http://prometheus_host:prometheus_port/metrics; 0 does not."""
    prometheus_host: str = "127.0.0.1"
    """The address to serve it on; whoever reaches it can read it."""

    view: TerminalView = TerminalView.auto
    """What a terminal shows: auto is one screen that renews itself where it can, off is lines."""

    def __post_init__(self) -> None:
        levels = ("DEBUG", "INFO", "WARNING", "ERROR")
        require(self.level in levels, "tracking.level", self.level, f"use one of {', '.join(levels)}")
        port = self.prometheus_port
        require(0 <= port < 65536, "tracking.prometheus_port", port, "use 1 to 65535, or 0 to serve nothing")
        require(self.prometheus_host != "", "tracking.prometheus_host", "''", "use 127.0.0.1 for this machine only")
        for key in ("wandb_project", "wandb_entity", "wandb_name"):
            value = getattr(self, key)
            fits = value.isprintable() and len(value) <= 128 and not set(value) & set("/\\#?%:")
            require(fits, f"tracking.{key}", repr(value), "use up to 128 characters without / \\ # ? % :")
        require(self.wandb_project != "", "tracking.wandb_project", "''", "use a name such as codezero")
