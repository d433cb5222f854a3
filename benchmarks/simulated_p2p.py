"""A network in memory and a clock that does not wait, so that thousands of nodes fit into one process.

`SimulatedP2P` has what codezero and hivemind's DHTNode use of hivemind's P2P. Messages are serialised and parsed as in
the real one. What is missing: connections and their handshakes, bandwidth, loss, and the p2p daemon.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hivemind.p2p import P2PContext, P2PDaemonError, P2PHandlerError, PeerID


@dataclass(slots=True)
class SimulatedNetwork:
    """Who is there, and how long a message takes."""

    delay_s: float = 0.0
    """One way, on average; from half to one and a half times as much."""
    nodes: dict[PeerID, SimulatedP2P] = field(default_factory=dict)

    async def travel(self) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s * random.uniform(0.5, 1.5))


@dataclass(frozen=True, slots=True)
class Contact:
    """The fields of hivemind's PeerInfo that are used."""

    peer_id: PeerID
    addrs: tuple[str, ...]


class SimulatedP2P:
    """One node's access to the network, under an address of its own."""

    is_alive = True

    def __init__(self, network: SimulatedNetwork, peer_id: PeerID, address: str) -> None:
        self._network, self.peer_id, self.address = network, peer_id, address
        self._handlers: dict[str, tuple[Callable[[Any, P2PContext], Awaitable[Any]], Any]] = {}
        self.contacts: dict[PeerID, Contact] = {}
        """Whom we have talked to; a real daemon would have closed the connections not used for long."""
        self._client = SimpleNamespace(control=SimpleNamespace(_pending_messages=asyncio.Queue()))  # always empty
        network.nodes[peer_id] = self

    async def add_protobuf_handler(self, name: str, handler: Any, input_protobuf_type: Any, **_: Any) -> None:
        self._handlers[name] = (handler, input_protobuf_type)

    async def remove_protobuf_handler(self, name: str, **_: Any) -> None:
        del self._handlers[name]

    async def call_protobuf_handler(self, peer_id: PeerID, name: str, input: Any, output_protobuf_type: Any) -> Any:
        """Raises P2PDaemonError: nobody is there; P2PHandlerError: the other side's handler has failed."""
        request = input.SerializeToString()
        await self._network.travel()
        other = self._network.nodes.get(peer_id)
        if other is None or name not in other._handlers:
            raise P2PDaemonError(f"cannot reach {peer_id}")
        self.contacts[peer_id] = Contact(peer_id, (other.address,))
        other.contacts[self.peer_id] = Contact(self.peer_id, (self.address,))
        handler, input_type = other._handlers[name]
        try:
            answer = await handler(input_type.FromString(request), P2PContext(name, peer_id, self.peer_id))
        except Exception as error:  # as the real one reports whatever a handler raises
            raise P2PHandlerError(repr(error)) from error
        response = answer.SerializeToString()
        await self._network.travel()
        return output_protobuf_type.FromString(response)

    async def list_peers(self) -> list[Contact]:
        return list(self.contacts.values())

    async def shutdown(self) -> None:
        self._network.nodes.pop(self.peer_id, None)


class SimulatedClock:
    """Stands in for the module `time`: starts now, and moves only when a loop has nothing to do but wait."""

    def __init__(self) -> None:
        self._start_s, self.elapsed_s = time.time(), 0.0

    def time(self) -> float:
        return self._start_s + self.elapsed_s

    def monotonic(self) -> float:
        return self.elapsed_s


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Instead of waiting, moves the clock."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 0:
            self._clock.elapsed_s += timeout
            timeout = 0
        return super().select(timeout)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs timers at their time on the clock, without waiting for them."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(_Selector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.elapsed_s
