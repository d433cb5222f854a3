from __future__ import annotations

import asyncio
import random

import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import genrl
from codezero.network.dht.neighbours import Neighbours, find, node_id_of
from tests.unit.network.dht.memory_p2p import MemoryNetwork

DICE = random.Random(1)


def peer(number: int) -> PeerID:
    return PeerID(b"\x12\x20" + number.to_bytes(32, "big"))


def somewhere() -> DHTID:
    return DHTID(DICE.getrandbits(160))


def table(takes=lambda node_id, peer_id: True) -> Neighbours:
    return Neighbours(node_id_of(peer(0)), 20, takes)


def is_consistent(one: Neighbours) -> bool:
    held = {uid for bucket in one.buckets for uid in (*bucket.nodes_to_peer_id, *bucket.replacement_nodes)}
    return held == set(one.uid_to_peer_id) and {v: k for k, v in one.peer_id_to_uid.items()} == one.uid_to_peer_id


def test_one_peer_that_claims_ten_thousand_places_has_one():
    one = table()
    for _ in range(10_000):
        one.add_or_update_node(somewhere(), peer(1))
    assert len(one.uid_to_peer_id) == 1
    assert is_consistent(one)


def test_ten_thousand_peers_do_not_fill_the_memory():
    one = table()
    for number in range(10_000):
        one.add_or_update_node(somewhere(), peer(number + 1))
    assert len(one.uid_to_peer_id) < 2000
    assert all(len(bucket.replacement_nodes) <= 20 for bucket in one.buckets)
    assert is_consistent(one)


def test_nobody_takes_the_place_of_another_peer():
    one = table()
    place = somewhere()
    one.add_or_update_node(place, peer(1))
    one.add_or_update_node(place, peer(2))
    assert one.get(node_id=place) == peer(1)
    assert one.get(peer_id=peer(2)) is None


def test_nodes_with_ids_at_the_bounds_of_buckets_are_found():
    one = table()
    bounds = [DHTID(2**159 + sum(2 ** (158 - i) for i in range(depth))) for depth in range(40)]
    for number, place in enumerate([*bounds, *(DHTID(2**159 + 7 * n) for n in range(400)), *map(DHTID, range(400))]):
        one.add_or_update_node(place, peer(number + 1))
    assert is_consistent(one)
    for place in list(one.uid_to_peer_id):
        assert one.buckets[one.get_bucket_index(place)][place] == one.get(node_id=place)
        del one[place]


def test_our_own_place_is_not_for_others():
    one = table()
    one.add_or_update_node(one.node_id, peer(1))
    assert one.uid_to_peer_id == {}


def test_a_place_must_follow_from_the_peer_id_where_the_rules_say_so():
    one = table(lambda node_id, peer_id: node_id == node_id_of(peer_id))
    one.add_or_update_node(somewhere(), peer(1))
    one.add_or_update_node(node_id_of(peer(2)), peer(2))
    assert list(one.uid_to_peer_id.values()) == [peer(2)]


def test_a_node_that_leaves_makes_room_for_a_spare_one():
    one = table()
    for number in range(1000):
        one.add_or_update_node(somewhere(), peer(number + 1))
    for uid in list(one.uid_to_peer_id)[:300]:
        del one[uid]
    assert is_consistent(one)


def answering(**fields) -> dht_pb2.FindResponse:
    return dht_pb2.FindResponse(results=[dht_pb2.FindResult(**fields)])


async def found(response, rules=None, node_id: bytes | None = None):
    """What alice makes of an answer by bob, and her dht."""
    network = MemoryNetwork()
    kwargs = {} if rules is None else {"rules": rules}
    alice, bob = await network.dht("alice", **kwargs), await network.dht("bob", **kwargs)

    async def answer(request, context):
        if node_id is not None:
            response.peer.node_id = node_id
        return response

    bob.p2p.answer("find", answer)
    return await find(alice._protocol, bob.p2p.peer_id, DHTID(7)), alice


@pytest.mark.parametrize(
    "response",
    [
        dht_pb2.FindResponse(),
        dht_pb2.FindResponse(results=[dht_pb2.FindResult()] * 2),
        dht_pb2.FindResponse(results=[dht_pb2.FindResult()] * 10_000),
    ],
    ids=["none", "two", "many"],
)
def test_another_number_of_answers_than_asked_for_is_no_answer(response):
    assert asyncio.run(found(response))[0] is None


@pytest.mark.parametrize("kind", [0, 77, 2**31 - 1, -1])
def test_a_kind_of_answer_that_does_not_exist_is_nothing_found(kind):
    answer, _ = asyncio.run(found(answering(type=kind, value=b"x")))
    assert answer.value is None


def test_neighbours_named_in_an_answer_are_as_many_as_agreed_and_stand_where_they_belong():
    peers = [peer(number) for number in range(1, 5000)]
    honest = answering(
        nearest_node_ids=[node_id_of(one).to_bytes() for one in peers],
        nearest_peer_ids=[one.to_bytes() for one in peers],
    )
    lying = answering(
        nearest_node_ids=[somewhere().to_bytes() for _ in peers], nearest_peer_ids=[one.to_bytes() for one in peers]
    )
    assert len(asyncio.run(found(honest))[0].nearer) == 20
    assert len(asyncio.run(found(lying))[0].nearer) == 0
    assert len(asyncio.run(found(lying, genrl.RULES))[0].nearer) == 20


def test_a_peer_id_of_three_megabytes_costs_no_time():
    """Its text form would take hours."""
    huge = answering(nearest_node_ids=[b"x" * 20], nearest_peer_ids=[b"\xff" * (3 << 20)])
    assert asyncio.run(found(huge, genrl.RULES))[0].nearer == {}


@pytest.mark.parametrize("node_id", [b"x", b"x" * 19, b"x" * 21, b"x" * 100_000], ids=len)
def test_node_ids_of_the_wrong_length_are_passed_over(node_id):
    one = answering(nearest_node_ids=[node_id], nearest_peer_ids=[peer(1).to_bytes()])
    answer, alice = asyncio.run(found(one, genrl.RULES, node_id=node_id))
    assert answer.nearer == {}
    assert alice.num_neighbours() == 0


async def test_we_are_not_told_of_ourselves():
    network = MemoryNetwork()
    alice, bob = await network.swarm("alice", "bob")
    answer = await find(alice._protocol, bob.p2p.peer_id, DHTID(7))
    assert answer.nearer == {}


@pytest.mark.parametrize("answer", [b"\xff\xff\xff", b"", OSError("gone"), EOFError(), ValueError("no")])
async def test_whatever_goes_wrong_is_no_answer_and_ends_the_acquaintance(answer):
    network = MemoryNetwork()
    alice, bob = await network.swarm("alice", "bob")

    async def fail(request, context):
        if isinstance(answer, Exception):
            raise answer
        return answer

    bob.p2p.answer("find", fail)
    assert await find(alice._protocol, bob.p2p.peer_id, DHTID(7)) is None
    assert alice.num_neighbours() == (1 if answer == b"" else 0)  # an empty message is an answer without results


async def test_an_answer_makes_a_neighbour_and_its_lack_ends_it():
    network = MemoryNetwork()
    alice, bob = await network.dht("alice"), await network.dht("bob")
    assert await alice.meet(bob.p2p.peer_id)
    assert alice.num_neighbours() == 1
    assert bob.num_neighbours() == 1
    bob.p2p.leave()
    assert not await alice.meet(bob.p2p.peer_id)
    assert alice.num_neighbours() == 0
