"""A client for JSON servers that may be slow, down or hostile: one total timeout, limited retries, one class of error.

Replies are not trusted: their length is limited, they must be JSON of the expected shape, and logs show them escaped.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.config.multiaddr import is_loopback
from codezero.errors import CodezeroError
from codezero.runtime import proxies

MAX_REPLY_BYTES = 1 << 20
"""The largest reply in bytes. Twenty alternatives of a token take 4 KB, a written verdict of 256 tokens some 2 KB."""
SHOWN_CHARS = 200
"""The number of characters of a refusal that messages show."""
WAIT_S = 1.0
"""Seconds before the first retry, plus or minus half at random; each further wait is twice as long."""
REFUSED = (400, 413, 422)
"""The statuses by which servers refuse one request, such as a prompt longer than the model's context."""
BUSY = (408, 425, 429)

logger = logging.getLogger(__name__)
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """The purpose of a server, for messages about it."""

    who: str
    """The name for the server in messages, such as "the judge"."""
    section: str
    """The first part of its settings' names, before the dot."""
    error: type[CodezeroError]
    serves_model: bool = True
    """True if its settings have a model and a backend that may be the cause of an error."""


class _Unavailable(Exception):
    """The server cannot answer now, but perhaps soon."""


class JsonClient:
    """A client of one server. Redirects are not followed, so that neither prompts nor key go anywhere else."""

    def __init__(
        self,
        url: str,
        purpose: Purpose,
        *,
        timeout_s: float,
        retries: int,
        at_once: int,
        key: str = "",
        key_env: str = "",
    ) -> None:
        """`key_env` is the environment variable of `key`, for messages. Raises `purpose.error`: URL, key or proxy
        is not usable."""
        self._purpose, self._section = purpose, purpose.section
        host = _host(url, purpose)
        if not (key.isascii() and key.isprintable()):
            raise purpose.error(f"{key_env} holds characters that no key has: set it to the server's key alone")
        self.place = url.rstrip("/")
        """The server's URL."""
        self._timeout_s, self._retries, self._at_once = timeout_s, retries, at_once
        self._key, self._key_env = key, key_env or "the key"
        self._trust_env = not is_loopback(host)
        if self._trust_env:
            proxies.require_usable(purpose.error)
        self._tls = httpx2.create_ssl_context(trust_env=self._trust_env)  # made once, since it reads all certificates
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    @property
    def _who(self) -> str:
        return f"{self._purpose.who} at {self.place}"

    def ask(self, path: str, bodies: Sequence[object], reply: type[Reply]) -> list[Reply | None]:
        """Posts `bodies` and returns the replies, in their order; None for a request that the server refuses.

        Raises the purpose's error: there is no complete, valid reply in time, after all retries.
        """
        return asyncio.run(self._ask_all(path, [msgspec.json.encode(body) for body in bodies], reply))

    def get(self, path: str, reply: type[Reply]) -> Reply | None:
        """Returns the reply to a GET of a path; None if the server refuses it. Raises as `ask` does."""
        (found,) = asyncio.run(self._ask_all(path, [None], reply))
        return found

    async def _ask_all(self, path: str, bodies: Sequence[bytes | None], reply: type[Reply]) -> list[Reply | None]:
        turn = asyncio.Semaphore(self._at_once)
        # Timeouts are set here, since the client's own begin again with every byte.
        async with httpx2.AsyncClient(
            headers=self._headers,
            timeout=None,
            follow_redirects=False,
            trust_env=self._trust_env,
            verify=self._tls,
        ) as client:

            async def one(body: bytes | None) -> Reply | None:
                async with turn:
                    raw = await self._repeat(client, path, body)
                return None if raw is None else self._decode(raw, reply)

            return await asyncio.gather(*map(one, bodies))

    async def _repeat(self, client: httpx2.AsyncClient, path: str, body: bytes | None) -> bytes | None:
        for attempt in range(self._retries + 1):
            if attempt:
                await asyncio.sleep(WAIT_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
            try:
                return await asyncio.wait_for(self._send(client, path, body), self._timeout_s)
            except asyncio.TimeoutError as error:
                # asyncio.run would otherwise wait for a name server that hangs.
                asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
                # No retry: it would give a busy server even more to do.
                tip = ", or use a smaller model" if self._purpose.serves_model else ""
                raise self._purpose.error(
                    f"{self._who} gave no complete reply in {self._timeout_s:g} s: raise {self._section}.timeout_s{tip}"
                ) from error
            except (httpx2.HTTPError, _Unavailable) as error:
                failure = error
        reason = ascii(str(failure))[1:-1].rstrip(".") or type(failure).__name__
        raise self._purpose.error(
            f"{self._who} cannot be asked, {reason} (tried {self._retries + 1} times): check that the "
            f"server runs, and {self._section}.url"
        ) from failure

    async def _send(self, client: httpx2.AsyncClient, path: str, body: bytes | None) -> bytes | None:
        """Sends a POST of the body, or a GET without one. Returns the reply; None if the server refuses it."""
        async with client.stream("GET" if body is None else "POST", self.place + path, content=body) as response:
            raw = bytearray()
            async for chunk in response.aiter_raw():  # as sent: nothing is decompressed
                raw += chunk
                if len(raw) > MAX_REPLY_BYTES:
                    raise self._purpose.error(f"{self._who} sent more than {MAX_REPLY_BYTES} bytes")
        status = response.status_code
        if status == 200:
            return bytes(raw)
        text = self._shown(bytes(raw))
        if status in REFUSED:
            logger.info("%s refused a request: HTTP %d %s", self._who, status, text)
            return None
        if status in BUSY or status >= 500:
            raise _Unavailable(f"HTTP {status}")
        raise self._purpose.error(self._refusal(status, text))

    def _shown(self, raw: bytes) -> str:
        """Returns the beginning of a server's text, without the key, which some servers repeat."""
        text = raw.decode("utf-8", "replace")
        return ascii((text.replace(self._key, "...") if self._key else text)[:SHOWN_CHARS])[1:-1]

    def _refusal(self, status: int, text: str) -> str:
        where, section = self._who, self._section
        if status in (401, 403):
            return f"{where} refused the key (HTTP {status}): check {self._key_env}"
        if status == 404:
            what, also = (" or model", f" and {section}.model") if self._purpose.serves_model else ("", "")
            return f"{where} knows no such path{what} (HTTP 404 {text}): check {section}.url{also}"
        if 300 <= status < 400:
            return f"{where} redirects (HTTP {status}), which is not followed: set {section}.url to the final address"
        return f"{where} answered HTTP {status} {text}: check {section}.url"

    def _decode(self, raw: bytes, reply: type[Reply]) -> Reply:
        try:
            return msgspec.json.decode(raw, type=reply)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            backend = f"{self._section}.backend and " if self._purpose.serves_model else ""
            raise self._purpose.error(
                f"{self._who} sent a reply that its protocol does not have ({ascii(str(error))[1:-1]}): check "
                f"{backend}{self._section}.url"
            ) from error


def _host(url: str, purpose: Purpose) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
        httpx2.URL(url)  # refuses hosts such as 256.1.1.1, which would else fail in every call
        usable = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    except (ValueError, httpx2.InvalidURL):
        usable = None
    if not usable or parts.username or parts.password or parts.query or parts.fragment:
        key = f" (a key comes from the environment, see {purpose.section}.api_key_env)" if purpose.serves_model else ""
        # The URL itself is not shown: it may hold a password.
        raise purpose.error(
            f"{purpose.section}.url is not a plain server address: write it as http://HOST:PORT/v1, without user, "
            f"password or query{key}"
        )
    return str(parts.hostname)
