"""An RPC that does one wrong thing, for as long as `mode` says so; else it asks a real one, or answers 7."""

import json
import socket
import threading
import time
import urllib.request
from contextlib import contextmanager

from tests import local_http

SEVEN = "0x" + "00" * 31 + "07"
KEY = "1f2e3d4c5b6a7980SECRET"
"""A key, as URLs of hosted RPCs have one."""


class HostileRpc:
    def __init__(self, behind=None):
        """`behind`: URL of the RPC that answers while the mode is "ok"."""
        self.mode, self.behind = "ok", behind
        self.asked = []
        """Methods of each HTTP request."""
        self.status = 200
        """The HTTP status of what it answers in JSON."""
        self.answers = {}
        """By method, in mode "answers": the `result`, or a dict with `error`."""
        self.for_methods = None
        """The mode holds only for HTTP requests that ask one of these; None for all."""
        self.release = threading.Event()

    @property
    def methods(self):
        """Every method that was asked for, in order."""
        return [method for methods in self.asked for method in methods]

    @contextmanager
    def serving(self):
        hostile = self

        class Handler(local_http.Handler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                hostile.answer(self, body)

        with local_http.serving(Handler) as self.url:
            try:
                yield self
            finally:
                self.release.set()

    def answer(self, handler, body):
        asked = json.loads(body)
        requests = asked if isinstance(asked, list) else [asked]
        methods = [request["method"] for request in requests]
        self.asked.append(methods)
        concerned = self.for_methods is None or set(self.for_methods) & set(methods)
        mode = self.mode if concerned else "ok"
        if mode == "accept then drop":  # the worst of all: it was taken, and nobody is told
            self._ask_behind(body)
        if mode in ("drop", "accept then drop"):
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        elif mode == "hang":
            self.release.wait(60)
        elif mode == "drip":
            self._drip(handler)
        else:
            send(handler, *self._reply(mode, requests, isinstance(asked, list), body))

    def _reply(self, mode, requests, batch, body):
        """Status, body, headers."""
        plain = {
            "http 429": (429, b"slow down", {"Retry-After": "7"}),
            "http 429 date": (429, b"slow down", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
            "http 429 junk": (429, b"slow down", {"Retry-After": "-1e9"}),
            "http 429 never": (429, b"slow down", {"Retry-After": "1 Jan 99999999999 00:00:00 +0000"}),
            "http 500": (500, b"oops \x1b[2J", {}),
            "http 403": (403, b"no key", {}),
            "http 404": (404, f"Cannot POST /v2/{KEY}".encode(), {}),
            "redirect": (302, b"", {"Location": "http://127.0.0.1:9/"}),
            "html": (200, b"<html>captive portal</html>", {}),
            "empty": (200, b"", {}),
            "truncated": (200, b'{"jsonrpc":"2.0","id":1,"resu', {}),
            "list": (200, b"[1,2]", {}),
            "deep": (200, b"[" * 100_000, {}),
            "huge": (200, b'"' + b"x" * (5 << 20) + b'"', {}),
            "not utf-8": (200, b'{"result": "\xff\xfe"}', {}),
        }
        if mode in plain:
            return plain[mode]
        if mode == "ok" and self.behind:
            return 200, self._ask_behind(body), {}
        answers = [self._member(mode, request) for request in requests]
        if mode == "batch refused" and batch:
            refusal = {"id": None, "error": {"code": -32600, "message": "no batches here"}}
            return self.status, json.dumps(refusal).encode(), {}
        if mode == "one missing":
            answers = answers[:-1]
        if mode == "out of order":
            answers = answers[::-1]
        return self.status, json.dumps(answers if batch else answers[0]).encode(), {}

    def _member(self, mode, request):
        wrong = {
            "null": {"result": None},
            "wrong id": {"id": 99_999, "result": SEVEN},
            "error 429": {"error": {"code": 429, "message": "rate limited"}},
            "error -32005": {"error": {"code": -32005, "message": "limit exceeded"}},
            "error text": {"error": "no"},
            "too short": {"result": "0x01"},
            "not hex": {"result": "hello"},
            "number": {"result": 7},
            "out of order": {"result": (request["params"] or [None])[0]},
        }
        if mode == "answers" and request["method"] in self.answers:
            answer = self.answers[request["method"]]
            wrong["answers"] = answer if isinstance(answer, dict) and "error" in answer else {"result": answer}
        elif mode == "answers" and self.behind:
            return json.loads(self._ask_behind(json.dumps(request).encode()))
        return {"jsonrpc": "2.0", "id": request["id"]} | wrong.get(mode, {"result": SEVEN})

    def _ask_behind(self, body):
        request = urllib.request.Request(self.behind, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read()

    def _drip(self, handler):
        """A byte at a time, each in time for a timeout that starts again with every byte."""
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        while not self.release.is_set():
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)


def send(handler, status, body, headers):
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()
