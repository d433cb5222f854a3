"""An HTTP server on loopback in a thread, for tests."""

import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Keeps the test output clean."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *request):
        """Prints errors of a handler, but not those of a connection that either side has broken off."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*request)


@contextmanager
def serving(handler):
    """Has a class of handlers answer on a free port, and gives the URL."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
