"""JSON-RPC 2.0 over HTTP to a server that may be slow, down, or hostile: one total timeout, bounded repeats, a cap on
replies, and answers matched by their id. Nothing of a URL but its host is ever shown: hosted RPCs carry keys in it.
"""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import ipaddress
import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.errors import LedgerError
from codezero.ledger.faults import (
    RateLimited,
    RpcBadReply,
    RpcFault,
    RpcRefused,
    RpcServerError,
    RpcTimeout,
    RpcUnreachable,
)

MAX_REPLY_BYTES = 4 << 20
MAX_BRACKETS = 5000
"""Opened in a reply; nothing that is asked for here comes near. A nested one could exhaust the stack where a library
has raised the interpreter's recursion limit, as several for chains do."""
SHOWN_CHARS = 200
"""Of a server's text, what is shown."""
WAIT_S = 0.25
"""Before the first repeat, give or take half; each further wait is twice as long."""
MAX_RETRY_AFTER_S = 600.0
"""A server that asks for more gets this."""
RATE_LIMIT_CODES = (429, -32005)

Request = tuple[str, list[Any]]
"""Method and parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The `error` of one answer; untrusted text, already made printable."""

    code: int
    message: str
    data: str = ""
    """Hex digits with 0x, empty without any."""


Answer = object
"""The `result` of an answer, or a Refusal."""


class JsonRpc:
    """One server. Redirects are not followed."""

    def __init__(self, url: str, *, timeout_s: float = 10.0, retries: int = 2) -> None:
        """Raises LedgerError: no usable URL."""
        self._host, loopback = _host(url)
        self._url, self._timeout_s, self._retries = url, timeout_s, retries
        self._trust_env = not loopback
        self._tls = httpx2.create_ssl_context(trust_env=self._trust_env)  # once: it reads all the certificates
        self._ids = itertools.count(1)

    @property
    def place(self) -> str:
        """The server, to be shown."""
        return f"the RPC at {self._host}"

    def ask(self, requests: Sequence[Request], *, repeat: bool = True) -> list[Answer]:
        """The answers in the order of the requests, all from one HTTP request.

        `repeat=False` for what must not be sent twice without looking. Raises RpcFault."""
        bodies: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params} for method, params in requests
        ]
        content = msgspec.json.encode(bodies if len(bodies) > 1 else bodies[0])
        for attempt in itertools.count():
            try:
                return self._match(asyncio.run(self._within_time(content)), [body["id"] for body in bodies])
            except (RpcUnreachable, RpcServerError, RpcBadReply):
                if not repeat or attempt == self._retries:
                    raise
            time.sleep(WAIT_S * 2**attempt * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    async def _within_time(self, content: bytes) -> bytes:
        # The client's own timeouts start again with every byte.
        try:
            return await asyncio.wait_for(self._post(content), self._timeout_s)
        except asyncio.TimeoutError as error:
            raise RpcTimeout(
                f"{self.place} gave no whole answer in {self._timeout_s:g} s: it is busy or hangs; asked again later"
            ) from error
        except (httpx2.HTTPError, OSError) as error:
            reason = shown(str(error)).rstrip(".") or type(error).__name__
            raise RpcUnreachable(
                f"{self.place} cannot be reached ({reason}): see that it runs and ledger.rpc_url is right; asked again "
                "later"
            ) from error

    async def _post(self, content: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        async with (
            httpx2.AsyncClient(
                timeout=None, follow_redirects=False, trust_env=self._trust_env, verify=self._tls
            ) as client,
            client.stream("POST", self._url, content=content, headers=headers) as response,
        ):
            raw = bytearray()
            async for chunk in response.aiter_raw():
                raw += chunk
                if len(raw) > MAX_REPLY_BYTES:
                    raise RpcBadReply(
                        f"{self.place} sent more than {MAX_REPLY_BYTES} bytes: use another ledger.rpc_url"
                    )
        status = response.status_code
        if status == 429:
            raise self._rate_limited(_retry_after_s(response.headers.get("retry-after", "")))
        if status >= 500:
            raise RpcServerError(f"{self.place} answered HTTP {status}: it is out of order; asked again later")
        if status != 200:
            raise RpcRefused(
                f"{self.place} answered HTTP {status} {shown(raw.decode('utf-8', 'replace'))}: check ledger.rpc_url "
                "and its key"
            )
        return bytes(raw)

    def _match(self, raw: bytes, ids: Sequence[int]) -> list[Answer]:
        if raw.count(b"[") + raw.count(b"{") > MAX_BRACKETS:
            raise self._bad(f"more than {MAX_BRACKETS} brackets")
        try:
            reply = msgspec.json.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._bad(f"no JSON: {shown(raw[:60].decode('utf-8', 'replace'))!r}") from error
        if len(ids) == 1:
            reply = [reply]
        elif isinstance(reply, dict) and "error" in reply:  # one error for the whole batch
            refusal = self._answer(reply)
            raise RpcRefused(f"{self.place} refuses a batch of {len(ids)} requests ({refusal}): use another RPC")
        if not isinstance(reply, list) or not all(isinstance(member, dict) for member in reply):
            raise self._bad(f"no answer of JSON-RPC: {shown(raw[:60].decode('utf-8', 'replace'))!r}")
        answers = {member.get("id"): member for member in reply if type(member.get("id")) is int}
        missing = [id_ for id_ in ids if id_ not in answers]
        if missing:
            raise self._bad(f"no answer to request {missing[0]}, or another's")
        return [self._answer(answers[id_]) for id_ in ids]

    def _answer(self, member: Mapping[str, Any]) -> Answer:
        error = member.get("error")
        if error is None:
            return member.get("result")
        if not isinstance(error, dict):
            error = {"message": str(error)}
        code, data = error.get("code"), error.get("data")
        if isinstance(data, dict):  # some servers wrap it
            data = data.get("data")
        refusal = Refusal(
            code=code if isinstance(code, int) else 0,
            message=shown(str(error.get("message", ""))),
            data=data if isinstance(data, str) and data.startswith("0x") and data.isalnum() and data.isascii() else "",
        )
        if refusal.code in RATE_LIMIT_CODES:
            raise self._rate_limited(None)
        return refusal

    def _bad(self, what: str) -> RpcFault:
        return RpcBadReply(f"{self.place} sent {what}: something between may answer for it; asked again later")

    def _rate_limited(self, retry_after_s: float | None) -> RateLimited:
        wait = "later" if retry_after_s is None else f"in {retry_after_s:.0f} s"
        return RateLimited(f"{self.place} limits the rate of requests; asked again {wait}", retry_after_s)


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


def _host(url: str) -> tuple[str, bool]:
    """The host to be shown, and whether it is this machine."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        usable = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    except ValueError:
        usable = None
    if not usable or parts.username or parts.password or parts.fragment:
        raise LedgerError("ledger.rpc_url is no plain HTTP address: write it as https://HOST/PATH, without user")
    host = str(parts.hostname)
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    return host + port, loopback
