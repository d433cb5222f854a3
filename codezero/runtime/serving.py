"""Serves programs of this machine over HTTP: its addresses, a socket that listens on one, and the server's loop."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from typing import TYPE_CHECKING, Any

import psutil

from codezero.errors import CodezeroError

if TYPE_CHECKING:
    from uvicorn import Server

REQUEST_S = 15
"""The longest time that a connection may be without a request, in seconds."""
UNREAD_S = 90
"""The longest time in which a client may take nothing of its answer, in seconds: links are lost for a minute."""


def own_addresses(family: socket.AddressFamily) -> list[str]:
    """Returns the addresses of this machine under which others may reach it."""
    up = [name for name, stats in psutil.net_if_stats().items() if stats.isup]
    found = [
        address.address.partition("%")[0]
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if name in up and address.family == family
    ]
    return [str(ip) for ip in map(ipaddress.ip_address, found) if not (ip.is_loopback or ip.is_link_local)]


def listening(host: str, port: int, error_kind: type[CodezeroError], what: str) -> socket.socket:
    """Returns a socket that listens on the address for `what`, such as "dashboard". Raises `error_kind`: it is not
    available."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name"
        raise error_kind(f"--host {host} is not an address of this machine: {reason}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise error_kind(
                f"port {port} is in use, perhaps by another {what}: give another one with --port, or --port 0 for "
                "a free one"
            ) from error
        raise error_kind(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def in_url(host: str) -> str:
    """Returns an address or a name as URLs have it, where IPv6 addresses are in brackets."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


def serve_app(app: Any, listener: socket.socket, connections: int) -> None:
    """Serves an ASGI app until Ctrl-C. Beyond so many connections at a time it answers 503."""
    server, log = make_server(app, connections), logging.getLogger("uvicorn.error")

    def is_running(record: logging.LogRecord) -> bool:
        return not server.should_exit  # what is cut at the end is no error, though uvicorn has a traceback of it

    log.addFilter(is_running)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return
    finally:
        log.removeFilter(is_running)


def make_server(app: Any, connections: int) -> Server:
    """Returns the server of an ASGI app."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        """HTTP/1.1 that ends connections without a request, or without a whole next one, and those of clients that do
        not read: for all of these uvicorn would wait for ever."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._left, self._taken_s = 0, self.loop.time()
            self._look = self.loop.call_later(REQUEST_S, self._end_if_idle, None)

        def connection_lost(self, exc: Exception | None) -> None:
            self._look.cancel()
            super().connection_lost(exc)

        def _end_if_idle(self, answered: Any) -> None:
            """Ends the connection if there was no request since the one that was answered at the last look, or if
            nothing was taken of what is left to be sent, for which the end of a closed connection waits as well."""
            left, now_s = self.transport.get_write_buffer_size(), self.loop.time()
            if not left or left != self._left:
                self._left, self._taken_s = left, now_s
            if now_s - self._taken_s > UNREAD_S:
                self.transport.abort()
                return
            is_answered = self.cycle is not None and self.cycle.response_complete
            if self.cycle is None or (is_answered and self.cycle is answered):
                self.transport.close()
            self._look = self.loop.call_later(REQUEST_S, self._end_if_idle, self.cycle if is_answered else None)

    config = uvicorn.Config(
        app,
        http=Protocol,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections,
        timeout_keep_alive=REQUEST_S,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def end_by_sigterm() -> None:
    """Makes SIGTERM end the process as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
