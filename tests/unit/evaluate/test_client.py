"""Servers that fail, dawdle, or mean harm: each costs a bounded time, and is one plain line."""

import gzip
import json
import math
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from codezero.config import Backend
from codezero.errors import EvaluatorError
from codezero.llm import client
from tests.unit.evaluate.loopback import answer, backend, drip, hang_up, in_turn, never, reply, serve

OPENAI, OLLAMA = Backend.openai, Backend.ollama
BOTH = pytest.mark.parametrize("kind", [OPENAI, OLLAMA], ids=["openai", "ollama"])
CHAT = [{"role": "user", "content": "Is it?"}]
LIKELY = [("Yes", math.log(0.6)), ("No", math.log(0.2))]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "WAIT_S", 0.01)


def with_logprob(kind, literal):
    """A reply whose first log-probability is this literal, JSON or not."""
    return json.dumps(answer(kind, [("Yes", 12345.0), ("No", -1.0)])).replace("12345.0", literal).encode()


HOSTILE = {
    "no JSON": lambda kind: reply(200, b"<html>it works</html>"),
    "nothing": lambda kind: reply(200, b""),
    "no UTF-8": lambda kind: reply(200, b'{"choices": "\xff"}'),
    "a list": lambda kind: reply(200, [1, 2, 3]),
    "null": lambda kind: reply(200, None),
    "choices of numbers": lambda kind: reply(200, {"choices": [1], "message": 2}),
    "message a list": lambda kind: reply(200, {"choices": [{"message": []}], "message": []}),
    "deep nesting": lambda kind: reply(200, b'{"x": ' + b"[" * 200_000),
    "deep nesting, closed": lambda kind: reply(200, b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "NaN": lambda kind: reply(200, with_logprob(kind, "NaN")),
    "minus infinity": lambda kind: reply(200, with_logprob(kind, "-Infinity")),
    "number too large": lambda kind: reply(200, with_logprob(kind, "1e999")),
    "log-probability a string": lambda kind: reply(200, with_logprob(kind, '"-0.1"')),
    "log-probability null": lambda kind: reply(200, with_logprob(kind, "null")),
    "2 MB": lambda kind: reply(200, b'{"x": "' + b"x" * (2 << 20) + b'"}'),
    "packed": lambda kind: reply(200, gzip.compress(b"[" * 1_000), Content_Encoding="gzip"),
    "cut off": lambda kind: reply(200, b'{"choices"', Content_Length="5000"),
    "negative length": lambda kind: reply(200, b"{}", Content_Length="-5"),
    "hangs up": lambda kind: hang_up,
    "no HTTP": lambda kind: lambda handler, count: handler.wfile.write(b"SSH-2.0-x\r\n\r\n"),
    "endless headers": lambda kind: (
        lambda handler, count: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 99_999)
    ),
    "error with control characters": lambda kind: reply(404, b"\x1b[2J\n\xe2\x80\xaeERROR: forged"),
    "unusual status": lambda kind: reply(299, b"\x1b]0;x\x07"),
    "wrong key": lambda kind: reply(401, b"\x1b[2J"),
    "500": lambda kind: reply(500, b"\x1b[2J"),
}


@BOTH
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_reply_is_an_error_of_one_plain_line(kind, hostile):
    with serve(hostile(kind)) as server, pytest.raises(EvaluatorError) as caught:
        backend(kind, server).choose([CHAT])
    assert str(caught.value).isprintable()
    assert str(caught.value).isascii()


SLOW = {
    "never answers": never,
    "drips headers": drip(b"HTTP/1.1 200 OK\r\nx: ", b"y"),
    "drips the body": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{", b" "),
    "drips chunks": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "drips interim answers": drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_timeout_is_of_the_whole_exchange_and_not_repeated(slow):
    with serve(slow) as server:
        with pytest.raises(EvaluatorError, match=r"no complete reply in 0\.4 s: raise evaluator\.timeout_s"):
            backend(OPENAI, server, timeout_s=0.4, retries=3).choose([CHAT])
        server.wait_until_asked()
        assert len(server.bodies) == 1


def test_a_name_server_that_hangs_delays_nobody_beyond_the_timeout(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(60) and [])
    started_s = time.monotonic()
    with pytest.raises(EvaluatorError, match="no complete reply in"):
        backend(OPENAI, SimpleNamespace(url="http://judge.example"), timeout_s=0.4).choose([CHAT])
    assert time.monotonic() - started_s < 30
    answers.set()


@BOTH
@pytest.mark.parametrize(
    "failure", [reply(503, b"loading"), reply(429, b"busy"), hang_up], ids=["503", "429", "closed"]
)
def test_failed_requests_are_repeated_as_often_as_set(kind, failure):
    with serve(failure) as server:
        with pytest.raises(EvaluatorError, match="tried 3 times"):
            backend(kind, server, retries=2).choose([CHAT])
        assert len(server.bodies) == 3
    with serve(in_turn(failure, failure, reply(200, answer(kind, LIKELY)))) as server:
        assert backend(kind, server, retries=2).choose([CHAT])[0] is not None


def test_waits_between_repeats_grow_and_differ(monkeypatch):
    waits = []

    async def remember(seconds):
        waits.append(seconds)

    monkeypatch.setattr(client, "WAIT_S", 1.0)
    monkeypatch.setattr(client.asyncio, "sleep", remember)
    with serve(reply(503, b"")) as server:
        for _ in range(2):
            with pytest.raises(EvaluatorError):
                backend(OPENAI, server, retries=3).choose([CHAT])
    assert len(waits) == 6
    for low, high, *of_both in zip((0.5, 1.0, 2.0), (1.5, 3.0, 6.0), waits[:3], waits[3:], strict=True):
        assert low <= min(of_both) < max(of_both) <= high
