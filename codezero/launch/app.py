"""Runs the sign-in app: starts it, asks how it is, and ends it with the node."""

from __future__ import annotations

import base64
import hmac
import http.client
import re
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from urllib.parse import quote

import msgspec

from codezero.errors import CodezeroError, ConfigError, LedgerError
from codezero.launch.app_build import HOST, AppBuild, AppPlace, end
from codezero.ledger.modal import credentials, token_of
from codezero.runtime import rotation
from codezero.runtime.console import Console

READY_S = 60.0
"""Seconds that a started app has to answer its first request."""
LASTS_S = 60.0
"""Seconds after which an app that was started again is taken for one that works."""
BORROWED_S = 5.0
"""Seconds between two looks at an app that another node has started."""
_ANSWER_S = 10.0
_MAX_ANSWER = 64 * 1024
_ANOTHER_PORT = "stop that, or give this sign-in app another port with --port-sign-in or CODEZERO_SIGN_IN_PORT"


class _Health(msgspec.Struct):
    """The app's answer to `/api/health`."""

    alchemy: str
    proof: str = ""
    """The HMAC of the port and the nonce with the app's token."""


class SignInApp:
    """A context manager that runs the app. An app that ends by itself is started again; one that already runs for
    another node is used, and left running, and one of its own takes its place when it ends."""

    def __init__(self, place: AppPlace, environment: Mapping[str, str], console: Console) -> None:
        self.place, self._console = place, console
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closing = threading.Event()
        self._build = AppBuild(place, environment, console, self._is_closing)
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> SignInApp:
        """Raises ConfigError or LedgerError: the app cannot be built or started, or another program has its port."""
        if self.health() is not None:
            self._console.line(f"sign-in: the app already runs at {self.place.url}")
        else:
            self._require_free_port()
            self._command = self._build.command()
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
        """Ends the app. A Ctrl-C meanwhile ends only the wait for that: what has ended before keeps its exit code."""
        self._is_closing.set()
        try:
            if self._watcher is not None:
                self._watcher.join()
            self._end()
        except KeyboardInterrupt:
            # Its keeper ends it once this process has closed the pipe to it, at the latest at its end.
            self._console.line("sign-in: the app is still ending and is not waited for")

    def health(self) -> str | None:
        """Returns `reachable` or the app's reason why Alchemy is not, or None if nothing answers at the port. Raises
        ConfigError: another program answers there, or an app that does not know this folder's token."""
        nonce = secrets.token_urlsafe()  # and not the token: another user may be listening
        health = _health(self.place.port, nonce)
        if health is None:
            return None
        token = token_of(self.place.login_dir)  # empty before the app's first start: then no proof is accepted
        if not token or not hmac.compare_digest(health.proof.encode(), self._proof(token, nonce)):
            raise ConfigError(
                f"port {self.place.port} is the sign-in app of another folder or user, or of an earlier version: "
                f"{_ANOTHER_PORT}"
            )
        return health.alchemy

    def _proof(self, token: str, nonce: str) -> bytes:
        digest = hmac.digest(token.encode(), f"health {self.place.port} {nonce}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=")

    def is_activated(self, org_id: str) -> bool:
        """Returns whether the app holds an activated session key of this user."""
        path = f"/api/get-api-key-status?orgId={quote(org_id, safe='')}"
        answer = _ask(self.place.port, "GET", path, credentials(self.place.login_dir))
        return answer is not None and answer[0] == 200 and answer[1].strip().strip(b'"') == b"activated"

    def address(self) -> str | None:
        """Returns a URL that admits one browser, once, or None if the app gives none. It admits whoever opens it first,
        so it must not get into a log or a program's arguments."""
        answer = _ask(self.place.port, "POST", "/api/ticket", credentials(self.place.login_dir))
        try:
            ticket = msgspec.json.decode(answer[1], type=dict[str, str])["ticket"] if answer is not None else ""
        except (msgspec.MsgspecError, KeyError, UnicodeDecodeError, RecursionError):
            return None
        return f"{self.place.url}/?ticket={ticket}" if re.fullmatch(r"[\w-]{20,100}", ticket) else None

    def _require_free_port(self) -> None:
        for family, host in ((socket.AF_INET, HOST), (socket.AF_INET6, "::1")):
            with suppress(OSError), socket.socket(family) as probe:
                probe.settimeout(2)
                if probe.connect_ex((host, self.place.port)) == 0:
                    raise _foreign(self.place.port)

    def _start(self) -> None:
        with self.place.opened_log() as log:
            self._process = self._build.spawn(self._command, log.fileno())

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
            with suppress(OSError, LedgerError):  # such as a log that cannot be written now
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
                self._command = self._build.command()
                self._start()

    def _end(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None


def alchemy(port: int) -> str | None:
    """Returns what `SignInApp.health` does, of whatever app answers at the port. Raises ConfigError: another program
    answers there."""
    health = _health(port, "")
    return None if health is None else health.alchemy


def _health(port: int, nonce: str) -> _Health | None:
    answer = _ask(port, "GET", f"/api/health?nonce={nonce}")
    if answer is None:
        return None
    try:
        return msgspec.json.decode(answer[1], type=_Health)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _foreign(port) from None


def _ask(port: int, method: str, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes] | None:
    """Returns status and beginning of the body, or None if there is no answer in time. Uses no proxy."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_S)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read(_MAX_ANSWER)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _foreign(port: int) -> ConfigError:
    return ConfigError(f"port {port} is another program's: {_ANOTHER_PORT}")
