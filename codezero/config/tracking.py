"""Settings of logs, trackers and the terminal."""

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
    """Format of swarm.log: text, or json with one object per line (time, level, logger, message, and exception if
    any)."""
    tensorboard: bool = False
    """Also write the rounds to log_dir/tensorboard; needs the extra tracking (docs/launch-script.md)."""
    wandb: Wandb = Wandb.off
    """Weights & Biases: offline keeps runs in log_dir/wandb, without account or network (`wandb sync` uploads them),
    online sends them, with WANDB_API_KEY; needs the extra tracking (docs/launch-script.md)."""
    wandb_project: str = "codezero"
    """Project of the runs in Weights & Biases."""
    wandb_entity: str = ""
    """User or team that owns the project; empty takes the account's own."""
    wandb_name: str = ""
    """Name of the run; empty takes the node's animal name."""
    prometheus_port: int = 0
    """Port to serve the latest round at http://prometheus_host:prometheus_port/metrics; 0 serves nothing."""
    prometheus_host: str = "127.0.0.1"
    """Address to serve the metrics on; anyone who reaches it can read them."""
    view: TerminalView = TerminalView.auto
    """Output on a terminal: auto is one screen that updates itself where possible, off is lines."""

    def __post_init__(self) -> None:
        levels = ("DEBUG", "INFO", "WARNING", "ERROR")
        require(self.level in levels, "tracking.level", self.level, f"use one of {', '.join(levels)}")
        port = self.prometheus_port
        require(0 <= port < 65536, "tracking.prometheus_port", port, "use 1 to 65535, or 0 to serve nothing")
        require(self.prometheus_host != "", "tracking.prometheus_host", "''", "use 127.0.0.1 for this machine only")
        require(self.log_dir != "", "tracking.log_dir", "''", "use logs, or . for the current folder")
        for key in ("wandb_project", "wandb_entity", "wandb_name"):
            value = getattr(self, key)
            fits = value.isprintable() and len(value) <= 128 and not set(value) & set("/\\#?%:")
            require(fits, f"tracking.{key}", repr(value), "use up to 128 characters without / \\ # ? % :")
        require(self.wandb_project != "", "tracking.wandb_project", "''", "use a name such as codezero")
