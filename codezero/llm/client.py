"""Asking a server that may be slow, down, or hostile: one total timeout, bounded repeats, and one kind of error.

Nothing a server sends is trusted: its reply is capped, must be JSON of the expected shape, and reaches logs escaped.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.errors import CodezeroError

MAX_REPLY_BYTES = 1 << 20
"""Twenty alternatives of one token take 4 KB, a written verdict of 256 tokens some 2 KB."""
SHOWN_CHARS = 200
"""Of a refusal's text, what is shown."""
WAIT_S = 1.0
"""Before the first repeat, give or take half; each further wait is twice as long."""
REFUSED = (400, 413, 422)
"""Statuses by which servers refuse one request, such as a prompt longer than the model's context."""
BUSY = (408, 425, 429)

logger = logging.getLogger(__name__)
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What a server is asked for, as messages about it have to say."""

    who: str
    """What the server is to us, such as "the judge"."""
    section: str
    """Which settings are about it: those that begin with this and a dot."""
    error: type[CodezeroError]
    serves_model: bool = True
    """Whether there are settings of a model and a backend that may be at fault."""


class _Unavailable(Exception):
    """The server cannot answer now; it may in a moment."""


class JsonClient:
    """Asks one server in JSON. Redirects are not followed, so neither prompts nor key go anywhere else."""

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
        """`key_env` names where `key` came from, for messages. Raises `purpose.error`: no usable URL or key."""
        self._purpose, self._section = purpose, purpose.section
        self._host = _host(url, purpose)
        if not (key.isascii() and key.isprintable()):
            raise purpose.error(f"{key_env} holds characters that no key has: set it to the server's key alone")
        self._url, self._timeout_s, self._retries, self._at_once = url.rstrip("/"), timeout_s, retries, at_once
        self._key, self._key_env = key, key_env or "the key"
        self._trust_env = not _is_loopback(self._host)
        self._tls = httpx2.create_ssl_context(trust_env=self._trust_env)  # once: it reads all the certificates
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    @property
    def _who(self) -> str:
        return f"{self._purpose.who} at {self.place}"

    @property
    def place(self) -> str:
        return self._url

    def ask(self, path: str, bodies: Sequence[object], reply: type[Reply]) -> list[Reply | None]:
        """The replies to `bodies`, in their order; None for a request that the server refuses as it is.

        Raises the purpose's error: no whole, sensible reply in time, after as many repeats as allowed.
        """
        return asyncio.run(self._ask_all(path, [msgspec.json.encode(body) for body in bodies], reply))

    def get(self, path: str, reply: type[Reply]) -> Reply | None:
        """What the server has at a path, None where it refuses. Raises as `ask` does."""
        (found,) = asyncio.run(self._ask_all(path, [None], reply))
        return found

    async def _ask_all(self, path: str, bodies: Sequence[bytes | None], reply: type[Reply]) -> list[Reply | None]:
        turn = asyncio.Semaphore(self._at_once)
        # Timeouts are ours: the client's own start again with every byte.
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
                # Not repeated: a server that is this busy would only get more to do.
                also = ", or use a smaller model" if self._purpose.serves_model else ""
                raise self._purpose.error(
                    f"{self._who} gave no whole reply in {self._timeout_s:g} s: raise {self._section}.timeout_s{also}"
                ) from error
            except (httpx2.HTTPError, _Unavailable) as error:
                failure = error
        reason = ascii(str(failure))[1:-1].rstrip(".") or type(failure).__name__
        raise self._purpose.error(
            f"{self._who} cannot be asked, {reason} (tried {self._retries + 1} times): see that the "
            f"server runs, and {self._section}.url"
        ) from failure

    async def _send(self, client: httpx2.AsyncClient, path: str, body: bytes | None) -> bytes | None:
        """Posts the body, or gets without one."""
        async with client.stream("GET" if body is None else "POST", self._url + path, content=body) as response:
            raw = bytearray()
            async for chunk in response.aiter_raw():  # as sent: nothing here is unpacked
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
        """The beginning of what a server says, without the key, which some repeat."""
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
                f"{self._who} sent what is no reply of its protocol ({ascii(str(error))[1:-1]}): check "
                f"{backend}{self._section}.url"
            ) from error


def _host(url: str, purpose: Purpose) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number
        usable = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    except ValueError:
        usable = None
    if not usable or parts.username or parts.password or parts.query or parts.fragment:
        key = f" (a key comes from the environment, see {purpose.section}.api_key_env)" if purpose.serves_model else ""
        # The URL itself is not shown: it may hold a password.
        raise purpose.error(
            f"{purpose.section}.url is no plain server address: write it as http://HOST:PORT/v1, without user, "
            f"password or query{key}"
        )
    return str(parts.hostname)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
