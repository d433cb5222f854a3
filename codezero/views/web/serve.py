"""The server that runs the dashboard until it is stopped."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from codezero.config.multiaddr import is_loopback
from codezero.errors import DashboardError
from codezero.views.web.app import make_app
from codezero.views.web.source import WatchedFolders
from codezero.views.web.views import Board

CONNECTIONS = 64
"""The most connections at a time; further ones are answered 503."""


def serve(source: WatchedFolders, board: Board | None, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serves on `host` and `port` (0: a free one) until Ctrl-C or SIGTERM; prints its address with `say`.

    Raises DashboardError if the address is not available.
    """
    with listening(host, port) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            make_app(source, board, hosts=(host,)),
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
        )
        say(f"dashboard: http://{_in_url(host)}:{port}/  (Ctrl-C ends it)")
        if not is_loopback(host):
            say(
                f"warning: whoever reaches {host}:{port} can read all of it, without a password and unencrypted; "
                "without --host only this machine can"
            )
        signal.signal(signal.SIGTERM, _stop)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            return


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def listening(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on the address. Raises DashboardError if it is not available."""
    if not 0 <= port < 2**16:
        raise DashboardError(f"--port {port} is not a port: give one from 1 to 65535, or 0 for a free one")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise DashboardError(f"--host {host} is not an address of this machine: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise DashboardError(
                f"port {port} is in use, perhaps by another dashboard: give another one with --port, or --port 0 for "
                "a free one"
            ) from error
        raise DashboardError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def _in_url(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "localhost"
    return f"[{host}]" if address.version == 6 else host
