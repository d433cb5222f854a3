"""Posts to a server that may be slow, down, or hostile, with one timeout for all and a limit on the reply's size.

Messages name only the host of a URL, since the URLs of hosted RPCs hold keys.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.config.multiaddr import is_loopback
from codezero.errors import LedgerError
from codezero.ledger.faults import RpcBadReply, RpcTimeout, RpcUnreachable
from codezero.runtime import proxies
from codezero.runtime.http_dates import retry_after_s

MAX_REPLY_BYTES = 4 << 20
MAX_DEPTH = 100
"""The most brackets in a reply that are open at once, far more than in any expected one. A deeply nested reply could
exhaust the stack where a library has raised the interpreter's recursion limit, as several for chains do."""
SHOWN_CHARS = 200
"""The most characters of a server's text in a message."""
MAX_RETRY_AFTER_S = 600.0
"""The longest wait in seconds that a server can ask for."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """A server's reply, of any status."""

    status: int
    body: bytes
    retry_after_s: float | None
    """Seconds that the server asks to wait; None if it does not."""


class Server:
    """A server at a URL, and the paths below that. It does not follow redirects."""

    def __init__(self, url: str, *, what: str, setting: str, timeout_s: float) -> None:
        """`what` and `setting` name server and setting in messages. Raises LedgerError: URL or proxy cannot be used."""
        host, loopback = _host(url, setting)
        self.place = f"{what} at {host}"
        """The server's name for messages."""
        self._url, self._setting, self._timeout_s = url, setting, timeout_s
        self._keys = re.findall(rb"[\w~-]{16,}", "?".join(urlsplit(url)[2:4]).encode())
        self._trust_env = not loopback
        if self._trust_env:
            proxies.require_usable(LedgerError)
        self._tls = httpx2.create_ssl_context(trust_env=self._trust_env)  # made once, since it reads all certificates

    def post(self, content: bytes, path: str = "", headers: Mapping[str, str] | None = None) -> HttpReply:
        """Sends JSON once, returns the reply. Raises RpcTimeout, RpcUnreachable, RpcBadReply: it may have arrived."""
        return asyncio.run(self._within_time(content, path, headers or {}))

    async def _within_time(self, content: bytes, path: str, headers: Mapping[str, str]) -> HttpReply:
        # httpx's own timeouts start again with every byte.
        try:
            return await asyncio.wait_for(self._post(content, path, headers), self._timeout_s)
        except asyncio.TimeoutError as error:
            # asyncio.run would otherwise wait for a name server that hangs.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            raise RpcTimeout(
                f"{self.place} gave no complete answer in {self._timeout_s:g} s: it is busy or hangs"
            ) from error
        except (httpx2.HTTPError, OSError) as error:
            reason = shown(str(error)).rstrip(".") or type(error).__name__
            raise RpcUnreachable(
                f"{self.place} cannot be reached ({reason}): check that it runs and {self._setting} is right"
            ) from error

    async def _post(self, content: bytes, path: str, more: Mapping[str, str]) -> HttpReply:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **more}
        async with (
            httpx2.AsyncClient(
                timeout=None, follow_redirects=False, trust_env=self._trust_env, verify=self._tls
            ) as client,
            client.stream("POST", self._url + path, content=content, headers=headers) as response,
        ):
            raw = bytearray()
            async for chunk in response.aiter_raw():
                raw += chunk
                if len(raw) > MAX_REPLY_BYTES:
                    raise RpcBadReply(
                        f"{self.place} sent more than {MAX_REPLY_BYTES} bytes: use another {self._setting}"
                    )
        for key in self._keys:  # some servers repeat it, and parts of a reply are shown
            raw = raw.replace(key, b"...")
        asked_s = retry_after_s(response.headers.get("retry-after", ""), time.time())
        wait_s = None if asked_s is None else min(asked_s, MAX_RETRY_AFTER_S)
        return HttpReply(status=response.status_code, body=bytes(raw), retry_after_s=wait_s)


def decode(raw: bytes, kind: type[T]) -> T:
    """Parses JSON of a type. Raises ValueError, with printable text: it is not JSON, or of another type."""
    if _depth(raw) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} brackets within each other")
    start = shown(raw[:60].decode("utf-8", "replace"))
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{start!r}, which is of another form ({shown(str(error))})") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no JSON: {start!r}") from error


def _depth(raw: bytes) -> int:
    """Returns the most brackets outside of strings that are open at once."""
    outside = b"".join(raw.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    return max(accumulate(1 if byte in b"[{" else -1 for byte in re.sub(rb"[^][{}]+", b"", outside)), default=0)


def shown(text: str) -> str:
    """Returns the beginning of a server's text on one line, with control characters escaped."""
    return ascii(text[:SHOWN_CHARS])[1:-1]


def _host(url: str, setting: str) -> tuple[str, bool]:
    """Returns the host with its port, and True if it is this machine. Raises LedgerError: the URL cannot be used."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        httpx2.URL(url)  # refuses hosts such as 256.1.1.1, which would else fail in every call
        usable = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    except (ValueError, httpx2.InvalidURL):
        usable = None
    if not usable or parts.username or parts.password or parts.fragment:
        raise LedgerError(f"{setting} is not a plain HTTP address: write it as https://HOST/PATH, without user")
    return f"{parts.hostname}{port}", is_loopback(str(parts.hostname))
