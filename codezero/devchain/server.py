"""A server of JSON-RPC 2.0 over HTTP, for single requests and batches; it answers one request at a time."""

from __future__ import annotations

import json
import re
import socket
import socketserver
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from codezero.devchain.evm import SERVER_ERROR, CallRefused
from codezero.errors import ChainError

MAX_BODY_BYTES = 2 * 1024 * 1024
"""The most bytes of a request: a deployment has 20 KB, and a batch some hundreds of bytes for each call."""
MAX_BATCH = 500
"""The most requests in a batch."""
IDLE_S = 120.0
"""Seconds without a request after which a connection is closed."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600

Call = Callable[[str, Sequence[Any]], Any]
"""A function that takes a method and its parameters and returns the result. Raises CallRefused."""


def answer(body: bytes, call: Call) -> bytes | None:
    """Returns the response to the body of a request; None if it asks for none (notifications)."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return _encoded(_failure(None, CallRefused(PARSE_ERROR, "parse error")))
    if not isinstance(asked, list):
        response = _answer_one(asked, call)
        return None if response is None else _encoded(response)
    if not 0 < len(asked) <= MAX_BATCH:
        refusal = CallRefused(INVALID_REQUEST, f"a batch has 1 to {MAX_BATCH} requests, not {len(asked)}")
        return _encoded(_failure(None, refusal))
    responses = [response for each in asked if (response := _answer_one(each, call)) is not None]
    return _encoded(responses) if responses else None


def _answer_one(asked: Any, call: Call) -> dict[str, Any] | None:
    if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
        return _failure(None, CallRefused(INVALID_REQUEST, "invalid request"))
    is_notification, id_ = "id" not in asked, asked.get("id")
    if id_ is not None and not isinstance(id_, str | int | float):
        return _failure(None, CallRefused(INVALID_REQUEST, "invalid request: id must be a string or a number"))
    params = asked.get("params", [])
    try:
        if not isinstance(params, list):
            raise CallRefused(INVALID_REQUEST, "invalid request: params must be a list")
        response = {"jsonrpc": "2.0", "id": id_, "result": call(asked["method"], params)}
    except CallRefused as refusal:
        response = _failure(id_, refusal)
    except sqlite3.Error as error:
        print(f"the chain cannot be stored: {error}", file=sys.stderr, flush=True)
        response = _failure(id_, CallRefused(SERVER_ERROR, "the chain cannot be stored"))
    return None if is_notification else response


def _failure(id_: Any, refusal: CallRefused) -> dict[str, Any]:
    data = {} if refusal.data is None else {"data": refusal.data}
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": refusal.code, "message": refusal.message, **data}}


def _encoded(response: Any) -> bytes:
    return json.dumps(response).encode()


class RpcServer(socketserver.ThreadingTCPServer):
    """Serves in a thread of its own between `start` and `close`."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, call: Call) -> None:
        """Takes the port. Raises ChainError: it cannot be listened on."""
        self._call, self._lock = call, threading.Lock()
        self.is_closed = False
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ChainError(f"cannot listen on port {port} of {host} ({reason}): give another --port") from error
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="rpc", daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stops serving; waits for the request that is being answered."""
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()
        with self._lock:
            self.is_closed, self._call = True, _closed

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints errors, but not those of a client that is gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def respond(self, body: bytes) -> bytes | None:
        """As `answer`, with this server's methods."""
        return answer(body, self._one_at_a_time)

    def _one_at_a_time(self, method: str, params: Sequence[Any]) -> Any:
        with self._lock:
            return self._call(method, params)


def _closed(method: str, params: Sequence[Any]) -> Any:
    raise CallRefused(SERVER_ERROR, "the chain is being stopped")


class _Handler(BaseHTTPRequestHandler):
    server: RpcServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    # Headers and body go out together and at once: in two packets, with Nagle's algorithm, a request takes 40 ms more.
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        # A web page in a browser of this machine can post here, but not with this type.
        if self.headers.get_content_type() != "application/json":
            self._refuse(415, "send application/json")
        elif not re.fullmatch(r"[0-9]{1,12}", length):
            self._refuse(411, "send a Content-Length")
        elif int(length) > MAX_BODY_BYTES:
            self._refuse(413, f"send at most {MAX_BODY_BYTES} bytes")
        else:
            body = self.server.respond(self.rfile.read(int(length)))
            self.close_connection |= self.server.is_closed
            self._send(204 if body is None else 200, body or b"")

    def _refuse(self, status: int, reason: str) -> None:
        """Answers without reading the body, so the connection has to be closed."""
        self.close_connection = True
        self._send(status, _encoded(_failure(None, CallRefused(INVALID_REQUEST, reason))))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""
