"""Serving over HTTP: connections that ask nothing do not take the places of others."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest

from codezero.errors import RolloutError
from codezero.runtime import serving
from tests.processes import wait_until

MANY = 1 << 24
"""More bytes than a system keeps for a client that reads nothing."""


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/parts":
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(MANY // 64), "more_body": True})
    await send({"type": "http.response.body", "body": bytes(MANY) if scope["path"] == "/much" else b"hello"})


@pytest.fixture
def address(monkeypatch):
    """Where an app is served to two connections, each of which has 0.3 s for its first request, and 2 s to take
    something of an answer."""
    monkeypatch.setattr(serving, "REQUEST_S", 0.3)
    monkeypatch.setattr(serving, "UNREAD_S", 2.0)
    with serving.listening("127.0.0.1", 0, RolloutError, "test") as listener:
        server = serving.make_server(hello, connections=2)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()
        server.should_exit = True
        thread.join(timeout=60)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_connections_without_a_request_are_ended(address, sent):
    idle = [socket.create_connection(address, timeout=60) for _ in range(3)]
    for connection in idle:
        connection.sendall(sent)
        assert connection.recv(1) == b""
        connection.close()
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_connections_without_a_whole_second_request_are_ended(address):
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nG")
        assert b"".join(iter(lambda: connection.recv(1000), b"")).startswith(b"HTTP/1.1 200")


def asking(address, sent):
    """A connection that has sent this, with as little room for answers as there can be."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.settimeout(60)
    connection.connect(address)
    connection.sendall(sent)
    return connection


UNREAD = {
    "an answer": b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n",
    "an answer in parts": b"GET /parts HTTP/1.1\r\nHost: x\r\n\r\n",
    "the last answer": b"GET /much HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "answers to requests sent at once": b"GET /parts HTTP/1.1\r\nHost: x\r\n\r\n" * 9,
}


@pytest.mark.parametrize("sent", UNREAD.values(), ids=UNREAD)
def test_connections_that_do_not_read_their_answers_are_ended(address, sent):
    def gets_in():
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(1000).startswith(b"HTTP/1.1 200")

    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(asking(address, sent))
        assert not gets_in()
        wait_until(gets_in, 20)


def test_a_slow_reader_gets_its_whole_answer(address):
    with asking(address, UNREAD["the last answer"]) as connection:
        got = 0
        while piece := connection.recv(1 << 18):
            got += len(piece)
            if got % (1 << 20) < len(piece):
                time.sleep(0.25)  # 4 s in all
        assert got > MANY


def test_an_answer_that_is_cut_at_the_end_is_no_error(monkeypatch, capfd):
    begun, made = threading.Event(), []

    async def endless(scope, receive, send):
        begun.set()
        await asyncio.sleep(600)

    def make(app, connections):
        made.append(make_server(app, connections))
        return made[0]

    make_server = serving.make_server
    monkeypatch.setattr(serving, "make_server", make)
    listener = serving.listening("127.0.0.1", 0, RolloutError, "test")
    thread = threading.Thread(target=serving.serve_app, args=(endless, listener, 2))
    thread.start()
    with socket.create_connection(listener.getsockname()) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert begun.wait(60)
        made[0].should_exit = True
        thread.join(timeout=60)
    listener.close()
    assert not thread.is_alive()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "no.such.host.invalid"])
def test_a_host_that_is_no_address_here_is_named(host):
    with pytest.raises(RolloutError, match=f"--host {host} is not an address of this machine"):
        serving.listening(host, 0, RolloutError, "test")
