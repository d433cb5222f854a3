"""Serving over HTTP: connections that ask nothing do not take the places of others."""

import socket
import threading

import pytest

from codezero.errors import RolloutError
from codezero.runtime import serving


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def address(monkeypatch):
    """Where an app is served to two connections, each of which has 0.3 s for its first request."""
    monkeypatch.setattr(serving, "REQUEST_S", 0.3)
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


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "no.such.host.invalid"])
def test_a_host_that_is_no_address_here_is_named(host):
    with pytest.raises(RolloutError, match=f"--host {host} is not an address of this machine"):
        serving.listening(host, 0, RolloutError, "test")
