"""A network in memory: what codezero and hivemind's protocol use of hivemind's P2P, without daemon or connections."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from hivemind.p2p import P2PContext, P2PDaemonError, P2PHandlerError, PeerID

from codezero.network import directory
from codezero.network.board import Board
from codezero.network.dht.dht import Dht
from codezero.network.gossip import SwarmGossip
from codezero.types import RoundId, SwarmRound
from tests.unit.network.wire_builders import identity


def run(scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(scenario())


def sybil_id(name: str) -> PeerID:
    """A peer id without a key, which costs no time to make."""
    return PeerID(b"\x12\x20" + hashlib.sha256(name.encode()).digest())


class MemoryNetwork:
    def __init__(self) -> None:
        self.nodes: dict[PeerID, MemoryP2P] = {}

    async def dht(self, name: str, *, rules=directory.RULES, serve: bool = True, address: str = "") -> Dht:
        """A node that knows nobody, with the identity of this name, at an address of its own. One that is called
        `sybil ...` never signs anything."""
        peer_id = sybil_id(name) if name.startswith("sybil") else PeerID.from_base58(identity(name).peer_id)
        dht = await Dht.create(MemoryP2P(self, peer_id, address or f"10.0.0.{len(self.nodes) + 1}"), rules, serve)
        dht._protocol.wait_timeout = 60.0  # nobody in memory is slow, but the machine may be
        return dht

    async def swarm(self, *names: str, **kwargs) -> list[Dht]:
        """Nodes that all know each other."""
        dhts = [await self.dht(name, **kwargs) for name in names]
        for dht in dhts:
            for other in dhts:
                if dht is not other:
                    assert await dht.meet(other.p2p.peer_id)
        return dhts


class MemoryP2P:
    def __init__(self, network: MemoryNetwork, peer_id: PeerID, address: str) -> None:
        self._network, self.peer_id, self.address = network, peer_id, address
        self._handlers: dict[str, tuple[Callable[[Any, P2PContext], Awaitable[Any]], Any]] = {}
        self._contacts: dict[PeerID, str] = {}
        self.calls: list[tuple[PeerID, str]] = []
        self.pending: asyncio.Queue[Any] = asyncio.Queue()
        """The messages that a daemon has not taken yet: none, unless a test puts some here."""
        self._client = SimpleNamespace(control=SimpleNamespace(_pending_messages=self.pending))
        network.nodes[peer_id] = self

    async def add_protobuf_handler(self, name: str, handler, input_type, **_) -> None:
        self._handlers[name] = (handler, input_type)

    def answer(self, rpc: str, handler: Callable[[Any, P2PContext], Awaitable[Any]]) -> None:
        """Makes this node answer so from now on, such as `answer("find", ...)`."""
        name = f"DHTProtocol.rpc_{rpc}"
        self._handlers[name] = (handler, self._handlers[name][1])

    async def call_protobuf_handler(self, peer_id: PeerID, name: str, input, output_type):
        self.calls.append((peer_id, name.rpartition("_")[2]))
        other = self._network.nodes.get(peer_id)
        await asyncio.sleep(0)
        if other is None or name not in other._handlers:
            raise P2PDaemonError(f"cannot reach {peer_id}")
        self._contacts[peer_id], other._contacts[self.peer_id] = other.address, self.address
        handler, input_type = other._handlers[name]
        context = P2PContext(name, peer_id, self.peer_id)
        try:
            answer = await handler(input_type.FromString(input.SerializeToString()), context)
        except Exception as error:  # as the real one tells the caller whatever a handler raises
            raise P2PHandlerError(repr(error)) from error
        return output_type.FromString(answer if isinstance(answer, bytes) else answer.SerializeToString())

    async def list_peers(self):
        return [SimpleNamespace(peer_id=peer, addrs=[f"/ip4/{at}/tcp/1"]) for peer, at in self._contacts.items()]

    def leave(self) -> None:
        del self._network.nodes[self.peer_id]


class MemoryLink:
    """A link to a DHT in memory, for a gossip on the running event loop."""

    def __init__(self, dht: Dht | None) -> None:
        self.current = dht

    async def dht(self) -> Dht | None:
        return self.current

    def others(self) -> set[str]:
        return set(self.current.neighbours()) if self.current is not None else set()

    def status(self) -> str:
        return "in memory"


async def publish(board: Board, dht: Dht, round_id: RoundId, groups, ttl_s: float) -> bool:
    return await board.publish(dht, round_id, board.pack(round_id, groups), ttl_s)


async def exchange(gossip: SwarmGossip, round_number: int, groups=(), elapsed_s: float = 0.0) -> SwarmRound:
    """SwarmGossip.exchange on the running loop."""
    return await gossip._exchange(RoundId(number=round_number), list(groups), elapsed_s)
