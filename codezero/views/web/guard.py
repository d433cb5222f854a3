"""The checks before every page, and the headers that limit what a browser may do with the answer.

The pages hold text of peers. It is escaped; the headers protect readers if an escape is forgotten.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from codezero.runtime.console import printable

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
    "'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
FAILED = "This page could not be made. The dashboard's terminal says why.\n"
LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """An ASGI app around the dashboard that accepts only GET and HEAD, and only `hosts` and this machine's loopback as
    Host header: a foreign page whose name was made to resolve to this machine (DNS rebinding) sends its own."""

    def __init__(self, app: App, hosts: Iterable[str]) -> None:
        hosts = tuple(hosts)
        self._app = app
        self._hosts = {*LOCAL, *(_name(host) for host in hosts)}
        self._any_address = any(host in ("0.0.0.0", "::") for host in hosts)
        if self._any_address:
            self._hosts.add(socket.gethostname().lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(send, headless=scope["method"] == "HEAD")
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self.allows(hosts[0].decode("latin-1")):
            await answer.text(
                421, "This dashboard does not answer under that name: open it under the one it printed.\n"
            )
        elif scope["method"] not in ("GET", "HEAD"):
            await answer.text(405, "The dashboard is read-only: GET and HEAD are all it knows.\n", allow="GET, HEAD")
        else:
            try:
                await self._app({**scope, "method": "GET"}, receive, answer)
            except Exception:  # the outermost boundary: a page that fails must neither end the server nor say why
                logger.error(
                    "a page failed; nodes and other pages continue. Nothing has to be done; please report this\n%s",
                    "\n".join(map(printable, traceback.format_exc().split("\n"))),
                )
                if not answer.begun:
                    await answer.text(500, FAILED)

    def allows(self, header: str) -> bool:
        """Returns whether a Host header names this server, with any port."""
        name = header.lower()
        name = name[: name.find("]") + 1] if name.startswith("[") else name.rpartition(":")[0] or name
        return name in self._hosts or (self._any_address and _is_address(name.strip("[]")))


class _Answer:
    """The sender of one answer: it adds HEADERS, and leaves out the body if `headless`."""

    def __init__(self, send: Send, headless: bool) -> None:
        self._send, self._headless = send, headless
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = dict(message.get("headers", []))
            headers |= {name.encode(): value.encode() for name, value in HEADERS.items()}
            headers.setdefault(b"cache-control", b"no-store")
            message = {**message, "headers": list(headers.items())}
        elif message["type"] == "http.response.body" and self._headless:
            message = {**message, "body": b""}
        await self._send(message)

    async def text(self, status: int, text: str, **headers: str) -> None:
        body = text.encode()
        sent = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **headers}
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        await self({"type": "http.response.start", "status": status, "headers": raw})
        await self({"type": "http.response.body", "body": body})


def _name(host: str) -> str:
    """Returns the host as a Host header contains it."""
    return f"[{host}]" if ":" in host else host.lower()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
