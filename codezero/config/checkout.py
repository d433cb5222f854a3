"""Paths and commands of this installation, which is a checkout, an unpacked source or an installed package."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import codezero

_PACKAGE = Path(codezero.__file__).parent
ROOT = _PACKAGE.parent if (_PACKAGE.parent / "run_rl_swarm.sh").is_file() else None
"""The folder of the checkout; None for an installed package."""
CONFIGS = (ROOT or _PACKAGE) / "configs"
"""The folder of the shipped YAML files."""
CONSTRAINTS = (ROOT or _PACKAGE) / "scripts" / "constraints.txt"
"""The file with the versions of packages that codezero was tested with."""
START = "./run_rl_swarm.sh" if ROOT else "codezero start"
"""The command that starts a node."""
COMMAND = ".venv/bin/codezero" if ROOT else "codezero"
"""The command line, as messages tell the user to give it."""
INSTALL_AGAIN = (
    "remove .venv and start ./run_rl_swarm.sh, which installs what was tried"
    if ROOT
    else f"install codezero again in a new virtual environment, with --constraint {CONSTRAINTS}"
)


def command(*words: object) -> str:
    """Returns the command line with these words, as a user can copy it into a shell."""
    return shlex.join([COMMAND, *map(str, words)])


def version() -> str:
    """Returns the version and, in a git checkout, its commit: `0.1.0 (171a78c)`, or `0.1.0 (171a78c-dirty)` with
    edits."""
    said = git(ROOT, "describe", "--always", "--dirty", "--exclude=*") if ROOT and (ROOT / ".git").exists() else None
    return f"{codezero.__version__} ({said.decode().strip()})" if said else codezero.__version__


def git(folder: Path, *arguments: str) -> bytes | None:
    """Returns the output of git in the folder; None if it fails, such as outside of a git checkout."""
    try:
        return subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, timeout=20, check=True, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
