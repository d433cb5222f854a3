"""The sign-in app's folder: where it is, how the app in it is built when its sources are newer, and its programs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from codezero.errors import ConfigError, LedgerError, told_as
from codezero.launch import nodejs
from codezero.launch.nodejs import NodeJs
from codezero.runtime import keeper
from codezero.runtime.console import Console
from codezero.runtime.files import try_lock

BUILD_S = 1800.0
"""Seconds that npm may take to install or to build."""
LOOK_S = 0.2
"""Seconds between two looks at whether npm, or another launcher that builds the app, is done."""
_LOCK = ".lock"
"""The name of the file that a launcher locks while it builds."""
_BUILDING = ".building"
"""The name of a file that exists while the app is built, and after a build that was interrupted."""
HOST = "127.0.0.1"
"""The address on which the app listens."""
_NOT_SOURCES = (
    *("node_modules", ".next", "temp-data", "tests", "screenshots", "next-env.d.ts", "sign-in.env"),
    *(_LOCK, _BUILDING),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPlace:
    """The sign-in app's folder, port and log."""

    folder: Path
    """The folder of the app's sources."""
    port: int
    log: Path
    """The file with the output of npm and the app; two files of a bounded size are kept."""

    @property
    def url(self) -> str:
        """The URL for browsers, which keep passkeys for names and not for numbers."""
        return f"http://localhost:{self.port}"

    @property
    def api_url(self) -> str:
        """The URL for programs. They send a token, and by its name the machine may be ::1, where others can listen."""
        return f"http://{HOST}:{self.port}"

    @property
    def login_dir(self) -> Path:
        return self.folder / "temp-data"

    def opened_log(self) -> IO[bytes]:
        """Opens the log to add to it. Raises LedgerError."""
        with told_as(LedgerError, f"cannot write {self.log}", "give another tracking.log_dir"):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            return self.log.open("ab")


class AppBuild:
    """Builds the app, and starts programs in its folder."""

    def __init__(
        self, place: AppPlace, environment: Mapping[str, str], console: Console, is_closing: threading.Event
    ) -> None:
        """`is_closing` is set when nobody needs the app any more."""
        self._place, self._environment, self._console = place, dict(environment), console
        self._is_closing = is_closing

    def command(self) -> list[str]:
        """Installs and builds what is missing or older than the app's sources; returns the command that starts the app.

        Raises ConfigError: there is no app or no Node.js here. LedgerError: npm failed.
        """
        folder = self._place.folder
        if not (folder / "package.json").exists():
            raise ConfigError(
                f"{folder} holds no sign-in app, which comes with the source, not with the wheel: start where that is "
                "unpacked, or take a local wallet with --sign-in wallet"
            )
        node = nodejs.find(self._console)
        if node.folder:
            self._environment["PATH"] = os.pathsep.join([node.folder, self._environment.get("PATH", os.defpath)])
        self._environment |= {"NEXT_TELEMETRY_DISABLED": "1", "PORT": str(self._place.port)}
        self._environment["DATA_DIR"] = str(self._place.login_dir.absolute())  # where nodes find the token
        if not (_is_installed(folder) and _is_built(folder)):  # in a container it is, and nothing can be written
            with self._alone_in(folder):
                if not _is_installed(folder):
                    # With NODE_ENV=production npm would leave out what the app is built with.
                    self._npm(node, "ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund")
                if not _is_built(folder):
                    (folder / _BUILDING).touch()
                    self._npm(node, "run", "build")
                    (folder / _BUILDING).unlink()
        return [*node.npm, "start"]

    @contextmanager
    def _alone_in(self, folder: Path) -> Iterator[None]:
        """A context in which no other launcher builds the app; the later of two finds what the first has built. Raises
        LedgerError: the folder cannot be written, or this app is closed meanwhile."""
        with told_as(LedgerError, f"cannot build the sign-in app in {folder}"):
            lock = (folder / _LOCK).open("a")
        is_told = False
        with lock:
            while not try_lock(lock):
                if not is_told:
                    self._console.line("sign-in: another launcher builds the app; this one waits for it")
                is_told = True
                self._pause()
            yield

    def _pause(self) -> None:
        """Waits for the next look. Raises LedgerError: this app is closed meanwhile."""
        if self._is_closing.wait(LOOK_S):
            raise LedgerError("the sign-in app is not needed any more")

    def _npm(self, node: NodeJs, *arguments: str) -> None:
        what = {"ci": "installing the packages of", "run": "building"}[arguments[0]]
        self._console.line(f"sign-in: {what} the app; this happens once and takes minutes ({self._place.log})")
        with self._place.opened_log() as log:
            process, deadline = self.spawn([*node.npm, *arguments], log.fileno()), time.monotonic() + BUILD_S
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    self._pause()
                code = process.poll()
            finally:
                end(process)
        if code != 0:
            ended = f"not done after {BUILD_S / 60:.0f} minutes" if code is None else f"exit code {code}"
            raise LedgerError(
                f"{what} the sign-in app failed (npm {arguments[0]}, {ended}): see the end of {self._place.log}, or "
                "take a local wallet with --sign-in wallet"
            )

    def spawn(self, command: Sequence[str], log: int) -> subprocess.Popen[bytes]:
        """Starts a command by way of `keeper`: it ends with this process, however that ends."""
        return subprocess.Popen(
            [sys.executable, keeper.__file__, "", *command],
            cwd=self._place.folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for this process
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends what `AppBuild.spawn` has started."""
    assert process.stdin is not None
    process.stdin.close()  # its keeper ends all of its processes then
    process.wait()


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _is_installed(folder: Path) -> bool:
    return _mtime(folder / "node_modules" / ".package-lock.json") >= _mtime(folder / "package-lock.json")


def _is_built(folder: Path) -> bool:
    built = _mtime(folder / ".next" / "BUILD_ID")
    return not (folder / _BUILDING).exists() and built >= max(_mtime(path) for path in _sources(folder))


def _sources(folder: Path) -> list[Path]:
    found = []
    for path in folder.iterdir():
        if path.name in _NOT_SOURCES or path.name.endswith(".tsbuildinfo"):
            continue
        found += [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return [path for path in found if path.name != ".DS_Store"]  # which a Mac's Finder writes at a look
