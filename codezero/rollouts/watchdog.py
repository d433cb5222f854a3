"""Cuts connections to servers that go on sending without an end to what they send."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

LOOK_S = 0.5


class Watchdog:
    """A limit on the time between two signs of life of a server. httpx limits each read by itself: one byte of a header
    now and then would hold its caller for ever."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._heard_s = 0.0
        self.has_cut = False
        """True once it has cut the connection of the request under way, or of the last one."""

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Notes the connection in use. It is for the extension `trace` of httpx's requests."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            self.heard()

    def heard(self) -> None:
        """Notes a sign of life."""
        self._heard_s = time.monotonic()

    @contextmanager
    def watching(self, most_s: float) -> Iterator[None]:
        """Cuts the connection if meanwhile there is no sign of life for `most_s` seconds."""
        self.heard()
        self.has_cut, ended = False, threading.Event()
        threading.Thread(target=self._watch, args=(most_s, ended), name="watchdog", daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _watch(self, most_s: float, ended: threading.Event) -> None:
        while not ended.wait(LOOK_S):
            if self._socket is not None and time.monotonic() - self._heard_s > most_s:
                self.has_cut = True
                # Closing it would wake nobody, and ssl's own method would pull its state from under the reader.
                with suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
