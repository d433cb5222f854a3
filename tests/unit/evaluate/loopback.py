"""A model server on loopback that answers as a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behave = Callable[[BaseHTTPRequestHandler, int], None]
"""Answers a request, given how many came before."""


@dataclass
class Server:
    url: str
    paths: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: what drips or waits stops then."""


@contextlib.contextmanager
def serve(behave: Behave) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                count = len(server.bodies)
                server.paths.append(self.path)
                server.bodies.append(json.loads(raw))
                server.keys.append(self.headers["Authorization"])
            self.ended = server.ended
            with contextlib.suppress(ConnectionError):
                behave(self, count)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    lock = threading.Lock()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = Server(url=f"http://127.0.0.1:{http.server_port}")
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server
    finally:
        server.ended.set()
        http.shutdown()
        http.server_close()


def reply(status: int, body: bytes | object, **headers: str) -> Behave:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def behave(handler: BaseHTTPRequestHandler, count: int) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(raw)

    return behave


def in_turn(*answers: Behave) -> Behave:
    """The first answer to the first request, and so on; the last one to all that follow."""

    def behave(handler: BaseHTTPRequestHandler, count: int) -> None:
        answers[min(count, len(answers) - 1)](handler, count)

    return behave


def drip(start: bytes, more: bytes) -> Behave:
    """Sends `start`, then `more` again and again, a piece every twentieth of a second."""

    def behave(handler: Any, count: int) -> None:
        handler.wfile.write(start)
        while not handler.ended.wait(0.05):
            handler.wfile.write(more)

    return behave


def never(handler: Any, count: int) -> None:
    handler.ended.wait()


def hang_up(handler: BaseHTTPRequestHandler, count: int) -> None:
    pass
