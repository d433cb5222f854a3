"""A model server on loopback that answers as a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from codezero.config import Backend, EvaluatorConfig
from codezero.evaluate.backends.base import JudgeBackend
from codezero.evaluate.backends.choose import make_outside
from tests import local_http
from tests.processes import wait_until

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

    def wait_until_asked(self) -> None:
        """A client that soon gives up may be gone before its request is read."""
        wait_until(lambda: self.bodies)


@contextlib.contextmanager
def serve(behave: Behave) -> Iterator[Server]:
    class Handler(local_http.Handler):
        def do_POST(self) -> None:
            self.answer(self.rfile.read(int(self.headers["Content-Length"])))

        def do_GET(self) -> None:
            self.answer(b"{}")

        def answer(self, raw: bytes) -> None:
            with lock:
                count = len(server.bodies)
                server.paths.append(self.path)
                server.bodies.append(json.loads(raw))
                server.keys.append(self.headers["Authorization"])
            self.ended = server.ended
            with contextlib.suppress(ConnectionError):
                behave(self, count)
            self.close_connection = True

    lock = threading.Lock()
    with local_http.serving(Handler) as url:
        server = Server(url=url)
        try:
            yield server
        finally:
            server.ended.set()


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


def backend(kind: Backend, server: Server, **settings: Any) -> JudgeBackend:
    """A backend that asks this server, once unless `retries` says otherwise."""
    base = server.url + "/v1" if kind is Backend.openai else server.url
    config = EvaluatorConfig(**{"model": "judge", "url": base, "timeout_s": 20.0, "retries": 0, **settings})
    return make_outside(kind, config, None, 1)


def answer(kind, alternatives=None, text="Yes"):
    """A whole reply of the protocol, with these (token, log-probability) at its first position."""
    positions = None
    if alternatives is not None:
        tops = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in alternatives]
        positions = [{**tops[0], "top_logprobs": tops}] if tops else []
    message = {"role": "assistant", "content": text}
    if kind is Backend.openai:
        logprobs = None if positions is None else {"content": positions}
        return {"id": "x", "choices": [{"index": 0, "message": message, "logprobs": logprobs}]}
    return {"model": "judge", "message": message, "done": True} | ({} if positions is None else {"logprobs": positions})
