"""Rollout servers in threads of the test's process, and their rollout files."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress

import uvicorn

from codezero.config import RolloutEngine
from codezero.errors import RolloutError
from codezero.llm.sample import sample_groups
from codezero.rollouts.client import RolloutServer
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.server import Sampler, make_app
from codezero.runtime.serving import listening
from tests.builders import loaded

TOKEN = "a-token-of-a-test"


def sampler(model=None, sample=sample_groups, engine=RolloutEngine.transformers):
    return Sampler(loaded(model), sample, engine)


@contextmanager
def served(app):
    """The URL of an ASGI app that is served meanwhile."""
    listener = listening("127.0.0.1", 0, RolloutError, "rollout server")
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


@contextmanager
def rollout_server(what=None, name="server.yaml", token=TOKEN):
    """A connection to a server of a `Sampler`, or of another ASGI app."""
    app = make_app(what or sampler(), TOKEN) if not callable(what) else what
    with served(app) as url:
        yield RolloutServer(RolloutFile(url=url, token=token), name)


@contextmanager
def dripping_server(begins):
    """A connection to a server that answers everything with `begins`, and then with a byte now and then that ends
    nothing."""
    ended = threading.Event()

    def serve():
        while not ended.is_set():
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(begins)
                while not ended.wait(0.1):
                    connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            yield RolloutServer(RolloutFile(url=url, token=TOKEN), "drips.yaml")
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=10)
