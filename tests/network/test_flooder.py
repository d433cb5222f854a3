"""A node that sends as much as it can, over a real daemon, while two honest ones play a round."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time

import msgspec
import pytest
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import directory
from codezero.network.dht import records
from codezero.network.dht.dht import key_id
from tests.network.hostile import answers, sends, store_request
from tests.network.nodes import Node, exchange_all, live_swarm, sources
from tests.processes import wait_until
from tests.unit.network.dht.test_dictionary import nested, sent


def body_request(number: int) -> dht_pb2.StoreRequest:
    """A hundred bodies of 8 KB that any server keeps."""
    request = dht_pb2.StoreRequest()
    for part in range(100):
        body = f"{number}/{part}".encode().ljust(8192, b".")
        one = store_request(directory.body_key(hashlib.sha256(body).digest()), "", msgspec.msgpack.encode(body))
        one.subkeys[0] = b"\xc0"
        request.MergeFrom(one)
    return request


def find_request(number: int) -> dht_pb2.FindRequest:
    return dht_pb2.FindRequest(keys=[key_id(f"{number} {part}").to_bytes() for part in range(100)])


FLOODS = {
    "bodies": ("store", body_request),
    "junk records": ("store", lambda number: store_request("7", f"Qm{number}", b"\xff" * 100, count=100)),
    "megabytes": ("store", lambda number: store_request("7", "Qm", b"\xff" * (3 << 20))),
    "nested subkeys": (
        "store",
        lambda number: dht_pb2.StoreRequest(
            keys=[b"k"], subkeys=[nested(2000)], values=[b""], expiration_time=[1e12], in_cache=[False]
        ),
    ),
    "nested directories": (
        "store",
        lambda number: dht_pb2.StoreRequest(
            keys=[b"k"], subkeys=[b""], values=[sent([[nested(900)] * 3])], expiration_time=[1e12], in_cache=[False]
        ),
    ),
    "finds": ("find", find_request),
    "pings from everywhere": (
        "ping",
        lambda number: dht_pb2.PingRequest(peer=dht_pb2.NodeInfo(node_id=number.to_bytes(20, "big"))),
    ),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with live_swarm(tmp_path_factory.mktemp("flooded")) as swarm:
        alice = swarm.node("alice")
        bob = swarm.node("bob", alice)
        alice.wait_for(bob)
        bob.wait_for(alice)
        exchange_all([alice, bob], 0)
        yield swarm, alice, bob


@pytest.mark.parametrize("flood", FLOODS)
def test_two_nodes_exchange_in_the_same_round_whatever_a_third_floods_them_with(pair, flood):
    swarm, alice, bob = pair
    place = list(FLOODS).index(flood)
    flooder = f"127.0.0.{66 + place}"
    mallory = swarm.node(f"mallory {flood}", alice, host=flooder)
    mallory.wait_for(alice, bob)
    rpc, request = FLOODS[flood]
    over = threading.Event()
    poured = []

    def pour(target: Node, offset: int) -> None:
        number = offset
        while not over.is_set():
            sends(mallory, target, rpc, request(number))
            poured.append(number)
            number += 1

    pourers = [threading.Thread(target=pour, args=(target, k << 20)) for k in range(2) for target in (alice, bob)]
    for pourer in pourers:
        pourer.start()
    try:
        for number in range(3):
            rounds = exchange_all([alice, bob], 10 * place + number + 1, elapsed_s=60.0)
            assert sources(rounds["alice"]) == {bob.peer_id}
            assert sources(rounds["bob"]) == {alice.peer_id}
            time.sleep(0.2)
        wait_until(lambda: len(poured) > 8)
    finally:
        over.set()
        for pourer in pourers:
            pourer.join()
        mallory.link.close()
    for node in (alice, bob):
        held = node.dht._server._records._held[flooder]
        assert (held > 0) is (flood == "bodies")
        assert held < records.MAX_STORED_BYTES // 2
        assert node.dht.num_neighbours() <= 1 + len(FLOODS)


def test_calls_taken_back_leave_nothing_behind(pair):
    swarm, alice, _ = pair
    mallory = swarm.node("mallory who takes back", alice)
    mallory.wait_for(alice)
    ping = dht_pb2.PingRequest(peer=mallory.dht._protocol.node_info, validate=True)
    stub = mallory.dht._protocol.get_stub(PeerID.from_base58(alice.peer_id))
    answers(mallory, "ping", None)  # which alice waits for before she answers

    async def call_and_take_back() -> int:
        refused = 0
        for _ in range(20):
            try:
                await stub.rpc_ping(ping, timeout=0.05)
            except asyncio.TimeoutError:
                refused += 1
        return refused

    assert mallory.link.run(call_and_take_back()) == 20
    tasks = alice.dht.p2p._client.control._handler_tasks
    wait_until(lambda: len(tasks) == 0)
