"""Runs the sign-in app: builds it when its sources are newer, starts it, queries its health, ends it with the node."""

from __future__ import annotations

import base64
import fcntl
import hmac
import http.client
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO
from urllib.parse import quote

import msgspec

from codezero.errors import CodezeroError, ConfigError, LedgerError, told_as
from codezero.launch import nodejs
from codezero.launch.nodejs import NodeJs
from codezero.ledger.modal import credentials, token_of
from codezero.runtime import keeper, rotation
from codezero.runtime.console import Console

READY_S = 60.0
"""Seconds that a started app has to answer its first request."""
LASTS_S = 60.0
"""Seconds after which an app that was started again is taken for one that works."""
BUILD_S = 1800.0
"""Seconds that npm may take to install or to build."""
BORROWED_S = 5.0
"""Seconds between two looks at an app that another node has started."""
_ANSWER_S = 10.0
_MAX_ANSWER = 64 * 1024
LOOK_S = 0.2
"""Seconds between two looks at whether another launcher still builds the app."""
_LOCK = ".lock"
_BUILDING = ".building"
"""The name of a file that exists while the app is built, and after a build that was interrupted."""
HOST = "127.0.0.1"
"""The address on which the app listens."""
_ANOTHER_PORT = "stop that, or give this sign-in app another port with --port-sign-in or CODEZERO_SIGN_IN_PORT"
_NOT_SOURCES = (
    *("node_modules", ".next", "temp-data", "tests", "screenshots", "next-env.d.ts", "sign-in.env"),
    *(_LOCK, _BUILDING),
)


class _Health(msgspec.Struct):
    """The app's answer to `/api/health`."""

    alchemy: str
    proof: str = ""
    """The HMAC of the port and the nonce with the app's token."""


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


class SignInApp:
    """A context manager that runs the app. An app that ends by itself is started again; one that already runs for
    another node is used, and left running, and one of its own takes its place when it ends."""

    def __init__(self, place: AppPlace, environment: Mapping[str, str], console: Console) -> None:
        self.place, self._environment, self._console = place, dict(environment), console
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closing = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> SignInApp:
        """Raises ConfigError or LedgerError: the app cannot be built or started, or another program has its port."""
        if self.health() is not None:
            self._console.line(f"sign-in: the app already runs at {self.place.url}")
        else:
            self._require_free_port()
            self._command = self._built()
            try:
                self._start()
                self._wait_until_ready()
            except BaseException:
                self._end()
                raise
        self._watcher = threading.Thread(target=self._watch, name="sign-in app", daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_closing.set()
        if self._watcher is not None:
            self._watcher.join()
        self._end()

    def health(self) -> str | None:
        """Returns `reachable` or the app's reason why Alchemy is not, or None if nothing answers at the port. Raises
        ConfigError: another program answers there, or an app that does not know this folder's token."""
        nonce = secrets.token_urlsafe()  # and not the token: another user may be listening
        health = self._health(nonce)
        if health is None:
            return None
        token = token_of(self.place.login_dir)  # empty before the app's first start: then no proof is accepted
        if not token or not hmac.compare_digest(health.proof.encode(), self._proof(token, nonce)):
            raise ConfigError(
                f"port {self.place.port} is the sign-in app of another folder or user, or of an earlier version: "
                f"{_ANOTHER_PORT}"
            )
        return health.alchemy

    def alchemy(self) -> str | None:
        """Returns what `health` does, of whatever app answers at the port."""
        health = self._health("")
        return None if health is None else health.alchemy

    def _health(self, nonce: str) -> _Health | None:
        answer = self._ask("GET", f"/api/health?nonce={nonce}")
        if answer is None:
            return None
        try:
            return msgspec.json.decode(answer[1], type=_Health)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._foreign() from None

    def _proof(self, token: str, nonce: str) -> bytes:
        digest = hmac.digest(token.encode(), f"health {self.place.port} {nonce}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=")

    def is_activated(self, org_id: str) -> bool:
        """Returns whether the app holds an activated session key of this user."""
        path = f"/api/get-api-key-status?orgId={quote(org_id, safe='')}"
        answer = self._ask("GET", path, credentials(self.place.login_dir))
        return answer is not None and answer[0] == 200 and answer[1].strip().strip(b'"') == b"activated"

    def address(self) -> str | None:
        """Returns a URL that admits one browser, once, or None if the app gives none. It admits whoever opens it first,
        so it must not get into a log or a program's arguments."""
        answer = self._ask("POST", "/api/ticket", credentials(self.place.login_dir))
        try:
            ticket = msgspec.json.decode(answer[1], type=dict[str, str])["ticket"] if answer is not None else ""
        except (msgspec.MsgspecError, KeyError, UnicodeDecodeError, RecursionError):
            return None
        return f"{self.place.url}/?ticket={ticket}" if re.fullmatch(r"[\w-]{20,100}", ticket) else None

    def _ask(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes] | None:
        """Returns status and beginning of the body, or None if there is no answer in time. Uses no proxy."""
        connection = http.client.HTTPConnection(HOST, self.place.port, timeout=_ANSWER_S)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read(_MAX_ANSWER)
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _require_free_port(self) -> None:
        for family, host in ((socket.AF_INET, HOST), (socket.AF_INET6, "::1")):
            with suppress(OSError), socket.socket(family) as probe:
                probe.settimeout(2)
                if probe.connect_ex((host, self.place.port)) == 0:
                    raise self._foreign()

    def _foreign(self) -> ConfigError:
        return ConfigError(f"port {self.place.port} is another program's: {_ANOTHER_PORT}")

    def _built(self) -> list[str]:
        """Installs and builds what is missing or older than the app's sources; returns the command that starts the app.

        Raises ConfigError: there is no app or no Node.js here. LedgerError: npm failed.
        """
        folder = self.place.folder
        if not (folder / "package.json").exists():
            raise ConfigError(
                f"{folder} holds no sign-in app, which comes with the source, not with the wheel: start where that is "
                "unpacked, or take a local wallet with --sign-in wallet"
            )
        node = nodejs.find(self._console)
        if node.folder:
            self._environment["PATH"] = os.pathsep.join([node.folder, self._environment.get("PATH", os.defpath)])
        self._environment |= {"NEXT_TELEMETRY_DISABLED": "1", "PORT": str(self.place.port)}
        self._environment["DATA_DIR"] = str(self.place.login_dir.absolute())  # where nodes find the token
        if not (_is_installed(folder) and _is_built(folder)):  # in a container it is, and nothing can be written
            with self._alone_in(folder):
                if not _is_installed(folder):
                    self._npm(node, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
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
            while not _locked(lock):
                if not is_told:
                    self._console.line("sign-in: another launcher builds the app; this one waits for it")
                is_told = True
                if self._is_closing.wait(LOOK_S):
                    raise LedgerError("the sign-in app is not needed any more")
            yield

    def _npm(self, node: NodeJs, *arguments: str) -> None:
        what = {"ci": "installing the packages of", "run": "building"}[arguments[0]]
        self._console.line(f"sign-in: {what} the app; this happens once and takes minutes ({self.place.log})")
        self.place.log.parent.mkdir(parents=True, exist_ok=True)
        with self.place.log.open("ab") as log:
            process = self._spawn([*node.npm, *arguments], log.fileno())
            try:
                ended = f"exit code {process.wait(BUILD_S)}"
            except subprocess.TimeoutExpired:
                _end(process)
                ended = f"not done after {BUILD_S / 60:.0f} minutes"
            except BaseException:
                _end(process)
                raise
        if ended != "exit code 0":
            raise LedgerError(
                f"{what} the sign-in app failed (npm {arguments[0]}, {ended}): see the end of {self.place.log}, or "
                "take a local wallet with --sign-in wallet"
            )

    def _start(self) -> None:
        self.place.log.parent.mkdir(parents=True, exist_ok=True)
        with self.place.log.open("ab") as log:
            self._process = self._spawn(self._command, log.fileno())

    def _spawn(self, command: Sequence[str], log: int) -> subprocess.Popen[bytes]:
        """Starts a command by way of `keeper`: it ends with this process, however that ends."""
        return subprocess.Popen(
            [sys.executable, keeper.__file__, "", *command],
            cwd=self.place.folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for this process
        )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while self.health() is None:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise LedgerError(
                    f"the sign-in app did not start at {self.place.url}: see the end of {self.place.log}, or take a "
                    "local wallet with --sign-in wallet"
                )
            time.sleep(0.1)

    def _watch(self) -> None:
        pause_s, started_s = 1.0, time.monotonic()
        while not self._is_closing.wait(pause_s if self._process else BORROWED_S):
            rotation.cut(self.place.log)
            if self._process is None:
                self._replace_borrowed()
                continue
            if self._process.poll() is None:
                if time.monotonic() - started_s > LASTS_S:
                    pause_s = 1.0
                continue
            if self._is_taken_over():
                self._end()
                continue
            self._console.line(f"sign-in: the app ended and is started again; see the end of {self.place.log}")
            pause_s, started_s = min(2 * pause_s, 60.0), time.monotonic()
            with suppress(OSError):
                self._start()

    def _is_taken_over(self) -> bool:
        """Returns True if another node's app has the port, such as of one that replaced the same app at this moment."""
        with suppress(CodezeroError):
            return self.health() is not None
        return False

    def _replace_borrowed(self) -> None:
        """Starts an app where that of another node has ended."""
        with suppress(OSError, CodezeroError):  # tried again, as what is wrong may pass
            if self.health() is None:
                self._console.line("sign-in: the app of another node has ended; this one starts its own")
                self._command = self._built()
                self._start()

    def _end(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None


def _locked(lock: IO[str]) -> bool:
    """Locks a file, until it is closed. Returns False if another program has locked it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
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
    return found
