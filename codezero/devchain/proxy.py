"""An HTTP server in front of anvil, for other machines: it passes on the methods that clients need and no others.

Whoever reaches anvil itself can act for any account, make money and rewind the chain (`anvil_*`, `evm_*`, and more).
"""

from __future__ import annotations

import re
import socket
import socketserver
import sys
import threading
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec

from codezero.errors import ChainError
from codezero.ledger.http import decode

LOOPBACK = "127.0.0.1"
MAX_BODY_BYTES = 1024 * 1024
"""The most bytes of a request: a deployment has 20 KB, a batch some hundreds of bytes a call. anvil takes 2 MB."""
IDLE_S = 120.0
"""Seconds without a request after which a connection is closed."""
ANSWER_S = 60.0
"""Longest wait in seconds for an answer of anvil."""
INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR = -32600, -32601, -32603
"""Error codes of JSON-RPC 2.0."""
METHODS = frozenset(
    """eth_blockNumber eth_call eth_chainId eth_estimateGas eth_feeHistory eth_gasPrice eth_getBalance
    eth_getBlockByHash eth_getBlockByNumber eth_getCode eth_getLogs eth_getStorageAt eth_getTransactionByHash
    eth_getTransactionCount eth_getTransactionReceipt eth_maxPriorityFeePerGas eth_sendRawTransaction eth_syncing
    net_version web3_clientVersion""".split()  # noqa: SIM905
)
"""The methods that are passed on (ethereum/execution-apis). Only a signed transaction can change the chain."""


class _Request(msgspec.Struct):
    """A request of JSON-RPC 2.0. Other fields are not passed on."""

    id: int | str
    method: str
    params: list[Any] = []
    jsonrpc: str = "2.0"


def checked(body: bytes) -> bytes:
    """Returns a request, or a batch of them, encoded anew, so that anvil reads what was checked here.

    Raises _Refusal: it is none, or one of its methods is not in METHODS.
    """
    try:
        asked = decode(body, _Request | list[_Request])  # type: ignore[arg-type]
    except ValueError as error:
        raise _Refusal(INVALID_REQUEST, f"invalid request: {error}") from error
    for request in asked if isinstance(asked, list) else [asked]:
        if request.method not in METHODS:
            raise _Refusal(METHOD_NOT_FOUND, f"{request.method[:100]!a} is not available here", request.id)
    return msgspec.json.encode(asked)


class _Refusal(Exception):
    """A request that is not passed on, or not answered."""

    def __init__(self, code: int, message: str, id_: int | str | None = None) -> None:
        super().__init__(message)
        self.body = msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}})


class Proxy(socketserver.ThreadingTCPServer):
    """Listens from the beginning, and answers in a thread of its own between `start` and `shutdown`."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int) -> None:
        """Takes the port. Raises ChainError: it cannot be listened on."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise ChainError(
                f"cannot listen on port {port} of {host} ({error.strerror}): give another --port"
            ) from error

    def start(self, anvil_port: int) -> None:
        """Begins to answer with the anvil that listens on a port of this machine."""
        self._anvil_port = anvil_port
        threading.Thread(target=self.serve_forever, args=(0.1,), name="rpc", daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints errors, but not those of a client that is gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def answer(self, body: bytes) -> bytes:
        """Returns anvil's answer to the body of a request, or a refusal."""
        try:
            passed = checked(body)
            with closing(HTTPConnection(LOOPBACK, self._anvil_port, timeout=ANSWER_S)) as connection:
                connection.request("POST", "/", passed, {"Content-Type": "application/json"})
                return connection.getresponse().read()
        except _Refusal as refusal:
            return refusal.body
        except (OSError, HTTPException):
            return _Refusal(INTERNAL_ERROR, "the chain does not answer").body


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
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
            self._send(200, self.server.answer(self.rfile.read(int(length))))

    def _refuse(self, status: int, reason: str) -> None:
        """Answers without reading the body, so the connection has to be closed."""
        self.close_connection = True
        self._send(status, _Refusal(INVALID_REQUEST, reason).body)

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
