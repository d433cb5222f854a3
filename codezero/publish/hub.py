"""Uploads to the hub, one at a time, in a process that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codezero.errors import Stopping
from codezero.publish.tokens import TOKEN_ENVS

TIMEOUT_S = 120.0
"""The limit in seconds for one step of a request: to connect, to send or get some bytes. A commit takes a while."""
LIMIT_S = 6 * 3600.0
"""The limit for a whole upload, in seconds: 2 GB at 1 Mbit a second take 4.5 hours."""
_ENVIRONMENT = {
    "HF_HUB_DISABLE_XET": "1",  # plain LFS uploads, since xet's library has its own limits and retries
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",  # the token of a user who has logged in on this machine
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadResult:
    """The result of an upload."""

    repo: str
    """The repository, as OWNER/NAME if the owner is known."""
    url: str = ""
    """The URL of the commit; empty if the upload failed."""
    status: int | None = None
    """The HTTP status of a failure; None for a success, or if the hub did not answer."""
    wait_s: float | None = None
    """The seconds that the hub asks to wait, if it does."""
    detail: str = ""
    """The error; partly untrusted text."""


class Hub:
    """A client of the hub with one token."""

    def __init__(
        self, token: str, endpoint: str, *, private: bool, timeout_s: float = TIMEOUT_S, limit_s: float = LIMIT_S
    ) -> None:
        self._token, self._endpoint, self._private = token, endpoint.rstrip("/"), private
        self._timeout_s, self._limit_s = timeout_s, limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def push(self, folder: Path, repo: str, card: str, message: str) -> UploadResult:
        """Uploads a folder's files and the card as one commit. A `repo` without an owner is one of the token's user.

        Blocks until the upload is done. Raises Stopping: `stop` was called.
        """
        request = {"token": self._token, "endpoint": self._endpoint, "private": self._private}
        request |= {"timeout_s": self._timeout_s, "folder": str(folder), "repo": repo, "card": card, "message": message}
        try:
            process = self._start()
        except OSError as error:
            return UploadResult(repo=repo, detail=f"the upload's process cannot be started: {error.strerror}")
        with process:
            try:
                reply = self._ask(process, request)
            finally:
                process.kill()
        if self._stopping:
            raise Stopping("the node stops")
        return _answer(reply, repo)

    def stop(self) -> None:
        """Ends an upload that is under way. The hub then has its whole commit, or nothing of it."""
        with self._lock:
            self._stopping = True
            if self._process is not None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name not in TOKEN_ENVS}
        with self._lock:
            if self._stopping:
                raise Stopping("the node stops")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "codezero.publish.upload"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={**environment, **_ENVIRONMENT},
                start_new_session=True,  # Ctrl-C reaches only the node, which ends this process
            )
            return self._process

    def _ask(self, process: subprocess.Popen[bytes], request: dict[str, Any]) -> bytes | None:
        """Returns the process's answer, or None if it took too long. Its standard input stays open until then, since
        the process ends when that is closed."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.wait(self._limit_s)
        except BrokenPipeError:  # the process ended before it had read the request
            return b""
        except subprocess.TimeoutExpired:
            return None
        return process.stdout.read()


def _answer(reply: bytes | None, repo: str) -> UploadResult:
    if reply is None:
        return UploadResult(repo=repo, detail="it took too long")
    try:
        return UploadResult(**json.loads(reply))
    except (ValueError, TypeError):
        return UploadResult(repo=repo, detail="the upload's process was ended")
