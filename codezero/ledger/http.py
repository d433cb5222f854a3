"""Posting to a server that may be slow, down, or hostile: one total timeout and a cap on replies. Nothing of a URL but
its host is ever shown: hosted RPCs carry keys in it.
"""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.errors import LedgerError
from codezero.ledger.faults import RpcBadReply, RpcTimeout, RpcUnreachable

MAX_REPLY_BYTES = 4 << 20
MAX_BRACKETS = 5000
"""Opened in a reply; nothing that is asked for here comes near. A nested one could exhaust the stack where a library
has raised the interpreter's recursion limit, as several for chains do."""
SHOWN_CHARS = 200
"""Of a server's text, what is shown."""
MAX_RETRY_AFTER_S = 600.0
"""A server that asks for more gets this."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """Whatever its status."""

    status: int
    body: bytes
    retry_after_s: float | None
    """What the server asked for, None if it did not."""


class Server:
    """One server, and the addresses below a URL of it. Redirects are not followed."""

    def __init__(self, url: str, *, what: str, setting: str, timeout_s: float) -> None:
        """`what` and the `setting` of the URL are for messages. Raises LedgerError: no usable URL."""
        host, loopback = _host(url, setting)
        self.place = f"{what} at {host}"
        """The server, to be shown."""
        self._url, self._setting, self._timeout_s = url, setting, timeout_s
        self._trust_env = not loopback
        self._tls = httpx2.create_ssl_context(trust_env=self._trust_env)  # once: it reads all the certificates

    def post(self, content: bytes, path: str = "", headers: Mapping[str, str] | None = None) -> HttpReply:
        """Sends JSON, once. Raises RpcTimeout, RpcUnreachable, RpcBadReply: it is unknown whether it arrived."""
        return asyncio.run(self._within_time(content, path, headers or {}))

    async def _within_time(self, content: bytes, path: str, headers: Mapping[str, str]) -> HttpReply:
        # The client's own timeouts start again with every byte.
        try:
            return await asyncio.wait_for(self._post(content, path, headers), self._timeout_s)
        except asyncio.TimeoutError as error:
            raise RpcTimeout(
                f"{self.place} gave no whole answer in {self._timeout_s:g} s: it is busy or hangs"
            ) from error
        except (httpx2.HTTPError, OSError) as error:
            reason = shown(str(error)).rstrip(".") or type(error).__name__
            raise RpcUnreachable(
                f"{self.place} cannot be reached ({reason}): see that it runs and {self._setting} is right"
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
        retry_after_s = _retry_after_s(response.headers.get("retry-after", ""))
        return HttpReply(status=response.status_code, body=bytes(raw), retry_after_s=retry_after_s)


def decode(raw: bytes, kind: type[T]) -> T:
    """The JSON in a reply. Raises ValueError, in words to be shown: there is none of that kind."""
    if raw.count(b"[") + raw.count(b"{") > MAX_BRACKETS:
        raise ValueError(f"more than {MAX_BRACKETS} brackets")
    start = shown(raw[:60].decode("utf-8", "replace"))
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{start!r}, which is of another form ({shown(str(error))})") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no JSON: {start!r}") from error


def shown(text: str) -> str:
    """The beginning of what a server says, on one line, without control characters."""
    return ascii(text[:SHOWN_CHARS])[1:-1]


def _retry_after_s(header: str) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3): a number or a date."""
    if header.isascii() and header.isdigit():
        return min(float(header[:9]), MAX_RETRY_AFTER_S)
    try:
        when = email.utils.parsedate_to_datetime(header)
        wait = (when - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    except (ValueError, TypeError):  # TypeError: a date without a zone
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER_S)


def _host(url: str, setting: str) -> tuple[str, bool]:
    """The host to be shown, and whether it is this machine."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        usable = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    except ValueError:
        usable = None
    if not usable or parts.username or parts.password or parts.fragment:
        raise LedgerError(f"{setting} is no plain HTTP address: write it as https://HOST/PATH, without user")
    host = str(parts.hostname)
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    return host + port, loopback
