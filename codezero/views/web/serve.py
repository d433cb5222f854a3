"""The server that runs the dashboard until it is stopped."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from codezero.config.multiaddr import is_loopback
from codezero.errors import CommandError
from codezero.runtime.serving import end_by_sigterm, in_url, listening, serve_app
from codezero.views.web.app import make_app
from codezero.views.web.page_data import Board
from codezero.views.web.source import WatchedFolders

CONNECTIONS = 64


def serve(source: WatchedFolders, board: Board | None, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serves on `host` and `port` (0: a free one) until Ctrl-C or SIGTERM; prints its address with `say`.

    Raises CommandError if the address is not available.
    """
    end_by_sigterm()
    with listening(host, port, CommandError, "dashboard") as listener:
        port = listener.getsockname()[1]
        app = make_app(source, board, hosts=(host,))
        say(f"dashboard: http://{_reached(host)}:{port}/  (Ctrl-C ends it)")
        if not is_loopback(host):
            say(
                f"warning: whoever reaches {host}:{port} can read all of it, without a password and unencrypted; "
                "without --host only this machine can"
            )
        serve_app(app, listener, CONNECTIONS)


def _reached(host: str) -> str:
    try:
        return "localhost" if ipaddress.ip_address(host).is_unspecified else in_url(host)
    except ValueError:
        return host
