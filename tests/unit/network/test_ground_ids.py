"""Peer ids that were made up to be near a key, all of nodes at one address, over a network in memory."""

from __future__ import annotations

import asyncio
import itertools
import time

import msgspec
import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import directory, genrl, wire
from codezero.network.dht.dht import key_id
from codezero.network.dht.neighbours import node_id_of
from codezero.network.dht.records import OfferedRecord
from codezero.types import RoundId
from tests.unit.network.dht.memory_p2p import MemoryNetwork, publish, sybil_id
from tests.unit.network.dht.test_dht import run_simulated
from tests.unit.network.test_native_board import board
from tests.unit.network.wire_builders import SWARM, group, identity

ROUND = RoundId(number=7)
WHERE = key_id(directory.directory_key(SWARM, wire.ROLLOUTS, ""))
PUBLISHERS = ("alice", "bob", "carol")
OTHERS = tuple(f"sybil honest {number}" for number in range(9))


def ground(count: int) -> list[str]:
    """Names of nodes that are nearer to the directory than all honest ones."""
    honest = [PeerID.from_base58(identity(name).peer_id) for name in PUBLISHERS]
    honest += map(sybil_id, OTHERS)
    nearest = min(WHERE ^ node_id_of(peer) for peer in honest)
    names = (f"sybil {number}" for number in itertools.count())
    found = (name for name in names if WHERE ^ node_id_of(sybil_id(name)) < nearest)
    return list(itertools.islice(found, count))


def keeps_nothing(dht) -> None:
    """Makes a node say that it keeps everything, and show nothing."""

    async def find(request, context):
        return dht_pb2.FindResponse(peer=dht._protocol.node_info, results=[dht_pb2.FindResult() for _ in request.keys])

    async def store(request, context):
        return dht_pb2.StoreResponse(peer=dht._protocol.node_info, store_ok=[True] * len(request.keys))

    dht.p2p.answer("find", find)
    dht.p2p.answer("store", store)


def answers_nothing(dht) -> None:
    """Makes a node that is connected, and never answers what is looked for."""

    async def find(request, context):
        await asyncio.sleep(3600)

    dht.p2p.answer("find", find)


async def peers_seen_beside(lies, count: int) -> list[int]:
    """How many of the other two publishers each of three sees, beside so many nodes of one address that lie so."""
    network = MemoryNetwork()
    honest = [await network.dht(name) for name in (*PUBLISHERS, *OTHERS)]
    liars = [await network.dht(name, address="6.6.6.6") for name in ground(count)]
    for node, other in itertools.permutations([*honest, *liars], 2):
        assert await node.meet(other.p2p.peer_id)
    for node in honest:
        node._protocol.wait_timeout = 3.0
        await node.addresses.refresh()
    for liar in liars:
        lies(liar)
    nodes = list(zip(PUBLISHERS, honest, strict=False))
    for name, dht in nodes:
        assert await publish(board(name), dht, ROUND, [group(identity(name).peer_id)], 600.0)
    return [len((await board(name).look(dht, ROUND)).notices) for name, dht in nodes]


@pytest.mark.parametrize(("lies", "count"), [(keeps_nothing, 3), (keeps_nothing, 4), (answers_nothing, 8)])
def test_no_number_of_ids_at_one_address_hides_what_three_nodes_publish(lies, count):
    assert run_simulated(lambda: peers_seen_beside(lies, count)) == [2, 2, 2]


def names_invented_nodes(dht) -> None:
    """Makes a node name twenty nodes that nobody is, nearer to any key than all others."""

    async def find(request, context):
        response = dht_pb2.FindResponse(peer=dht._protocol.node_info)
        for key in request.keys:
            places = [int.from_bytes(key, "big") ^ (number + 1) for number in range(20)]
            peers = [b"\x12\x20" + place.to_bytes(32, "big") for place in places]
            result = dht_pb2.FindResult(
                nearest_node_ids=[place.to_bytes(20, "big") for place in places], nearest_peer_ids=peers
            )
            response.results.append(result)
        return response

    dht.p2p.answer("find", find)


def liars_near(key: str, places: dict[DHTID, bool]) -> int:
    """How many of the four nodes nearest to a key are liars."""
    return sum(places[place] for place in sorted(places, key=key_id(key).xor_distance)[:4])


def test_liars_at_one_address_do_not_make_a_swarm_look_larger_than_it_is():
    async def scenario():
        network = MemoryNetwork()
        honest = [await network.dht(f"sybil honest {number}", rules=genrl.RULES) for number in range(22)]
        liars = [await network.dht(f"sybil {number}", rules=genrl.RULES, address="6.6.6.6") for number in range(6)]
        for node in (*honest[1:], *liars):
            assert await node.meet(honest[0].p2p.peer_id)
        for node in honest:
            await node.look_around()
        for liar in liars:
            names_invented_nodes(liar)
        places = {node._id: node in liars for node in (*honest, *liars)}
        keys = [key for key in map(str, range(200)) if liars_near(key, places) >= 2]
        for key, node in itertools.product(keys[:8], honest[:4]):
            await node.read(key)
        return [node.estimate_size() for node in honest[:4]]

    assert max(asyncio.run(scenario())) < 2 * 28


async def test_who_is_nearest_and_names_invented_nodes_does_not_hide_what_others_keep():
    alice, liar, *honest = await MemoryNetwork().swarm("alice", "sybil liar", *OTHERS, rules=genrl.RULES)
    key = next(key for key in map(str, range(1000)) if min((alice, liar, *honest), key=near(key)) is liar)
    names_invented_nodes(liar)
    for keeper in sorted(honest, key=near(key))[:3]:
        value = msgspec.msgpack.encode(b"content")
        item = OfferedRecord(key=key_id(key), subkey=None, value=value, expires_at_s=time.time() + 60, sender="")
        assert keeper._server._records.add(item, (0.0, 0.0), "1.2.3.4")
    assert await alice.fetch(key, lambda found: found == b"content") == b"content"


def near(key: str):
    return lambda dht: key_id(key) ^ dht._id
