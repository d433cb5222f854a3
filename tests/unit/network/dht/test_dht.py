"""Reading, searching and fetching among nodes that lie, stall and send too much, over a network in memory."""

from __future__ import annotations

import asyncio
import random
import time
from types import SimpleNamespace

import msgspec
import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from benchmarks.simulated_swarm import simulated_time
from codezero.network import genrl
from codezero.network.dht import dht as dht_module
from codezero.network.dht.dht import Dht, key_id
from codezero.network.dht.dictionary import pack_dictionary
from codezero.network.dht.neighbours import node_id_of
from codezero.network.dht.server import OWNERS
from tests.unit.network.dht.memory_p2p import MemoryNetwork, run
from tests.unit.network.dht.test_dictionary import nested, sent
from tests.unit.network.wire_builders import bin_, identity

ALICE = identity("alice").peer_id
SOON = 60.0


def run_simulated(scenario):
    """On a clock that moves only while all wait, so that only who never answers is too late."""
    with simulated_time() as loop:
        return loop.run_until_complete(scenario())


def directory_of(entries) -> dht_pb2.FindResult:
    return dht_pb2.FindResult(type=dht_pb2.FOUND_DICTIONARY, value=pack_dictionary(entries), expiration_time=1e12)


def always(result: dht_pb2.FindResult):
    async def answer(request, context):
        return dht_pb2.FindResponse(results=[result])

    return answer


async def trio(rules=genrl.RULES):
    """Alice, who reads; bob, who is honest; mallory, who is not."""
    return await MemoryNetwork().swarm("alice", "bob", "mallory", rules=rules)


async def read_beside(result: dht_pb2.FindResult) -> list[dict]:
    """What alice reads of a directory with one honest entry when mallory answers so: first of bob, then of mallory."""
    alice, bob, mallory = await trio()
    for dht in (alice, bob):
        item = dht_module.OfferedRecord(
            key=key_id("7"), subkey=ALICE, value=bin_(b"true"), expires_at_s=time.time() + SOON, sender=ALICE
        )
        assert dht._server.store(item, "1.2.3.4")
    mallory.p2p.answer("find", always(result))
    answers = {next(iter(a.values())).witness if a else None: a for a in await alice.read("7")}
    assert answers[bob.p2p.peer_id.to_base58()][ALICE].value == b"true"
    return [answer for witness, answer in answers.items() if witness in (None, mallory.p2p.peer_id.to_base58())]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xc1",
        b"\xff" * (4 << 20),
        nested(2000),
        sent([], maxsize={}),
        sent([[{}, b"x", 1.0], [ALICE, 7, 1.0], [ALICE, b"\xc1 no msgpack", 1.0], [ALICE, bin_(b"x"), None]]),
        sent([[ALICE, msgspec.msgpack.encode("text"), 1.0]]),
        sent([[ALICE, bin_(b"x" * (257 << 10)), 1.0]]),
        sent([[ALICE, bin_(b"x"), 1.0]] * 5000),
    ],
    ids=["nothing", "junk", "4 MB", "nested", "odd size", "wrong types", "text", "giant entry", "5000 entries"],
)
def test_a_replica_that_answers_garbage_shows_nothing_and_hides_nothing(value):
    (shown,) = run(lambda: read_beside(dht_pb2.FindResult(type=dht_pb2.FOUND_DICTIONARY, value=value)))
    assert shown == {}


def test_of_thousands_of_entries_as_many_are_read_as_an_honest_replica_has():
    entries = [(f"Qm{number}", bin_(b"x"), 1e12) for number in range(4000)]
    first = run(lambda: read_beside(directory_of(entries)))[0]
    again = run(lambda: read_beside(directory_of(entries)))[0]
    assert len(first) == len(again) == 64
    assert set(first) != set(again)  # drawn, so that nobody's place in the row decides


def test_owners_are_read_wherever_they_stand_and_are_no_entry():
    owners = msgspec.msgpack.encode({"QmA": "1.1.1.1", "QmB": "2.2.2.2"})
    entries = [(name, bin_(b"x"), 1e12) for name in ("QmA", "QmB", "QmC")]
    for order in ([(OWNERS, owners, 1e12), *entries], [*entries, (OWNERS, owners, 1e12)]):
        (shown,) = run(lambda order=order: read_beside(directory_of(order)))
        assert {name: entry.address for name, entry in shown.items()} == {
            "QmA": "1.1.1.1",
            "QmB": "2.2.2.2",
            "QmC": None,
        }


def test_a_replica_that_never_answers_costs_one_timeout():
    async def scenario():
        alice, _, mallory = await trio()
        alice._protocol.wait_timeout = 3.0

        async def stall(request, context):
            await asyncio.sleep(3600)

        for rpc in ("find", "store"):
            mallory.p2p.answer(rpc, stall)
        started_s = asyncio.get_running_loop().time()
        assert any(await alice.store("7", ALICE, b"content", time.time() + SOON))
        assert any(ALICE in answer for answer in await alice.read("7"))
        return asyncio.get_running_loop().time() - started_s

    assert run_simulated(scenario) == pytest.approx(6.0)  # of storing and of reading


BODY_KEY = "codezero/1/body/somewhere"


def test_lies_about_a_body_cost_a_step_each():
    async def scenario(lie):
        alice, bob, mallory = await trio()
        item = dht_module.OfferedRecord(
            key=key_id(BODY_KEY), subkey=None, value=bin_(b"true"), expires_at_s=time.time() + SOON, sender=""
        )
        assert bob._server._records.add(item, (0.0, 0.0), "1.2.3.4")
        mallory.p2p.answer("find", always(lie))
        return await alice.fetch(BODY_KEY, lambda body: body == b"true")

    for lie in (
        dht_pb2.FindResult(type=dht_pb2.FOUND_REGULAR, value=bin_(b"false")),
        dht_pb2.FindResult(type=dht_pb2.FOUND_REGULAR, value=b"\xc1"),
        dht_pb2.FindResult(type=dht_pb2.FOUND_REGULAR, value=b"\xff" * (4 << 20)),
        dht_pb2.FindResult(type=dht_pb2.FOUND_DICTIONARY, value=bin_(b"true")),
        dht_pb2.FindResult(type=99, value=bin_(b"true")),
        directory_of([(ALICE, bin_(b"true"), 1e12)]),
    ):
        assert run(lambda lie=lie: scenario(lie)) == b"true"


def ever_nearer(where: int, dice: random.Random):
    """Names twenty new nodes each time, nearer than all before, that do not exist."""
    distance = [2**159]

    async def answer(request, context):
        result = dht_pb2.FindResult()
        for _ in range(20):
            distance[0] = max(distance[0] * 9 // 10, 1)
            result.nearest_node_ids.append((where ^ distance[0]).to_bytes(20, "big"))
            result.nearest_peer_ids.append(b"\x12\x20" + dice.randbytes(32))
        return dht_pb2.FindResponse(results=[result])

    return answer


async def test_a_search_ends_though_somebody_names_ever_nearer_nodes(monkeypatch):
    monkeypatch.setattr(dht_module, "MAX_SEARCH_S", 0.3)
    network = MemoryNetwork()
    alice, bob, mallory = await network.swarm("alice", "bob", "mallory", rules=genrl.RULES)
    where = key_id("7")
    fakes = ever_nearer(where, random.Random(1))
    mallory.p2p.answer("find", fakes)
    real_call = type(alice.p2p).call_protobuf_handler

    async def in_league(self, peer_id, name, input, output_type):
        """As if mallory answered for all that she names."""
        known = peer_id in network.nodes
        return await real_call(self, peer_id if known else mallory.p2p.peer_id, name, input, output_type)

    monkeypatch.setattr(type(alice.p2p), "call_protobuf_handler", in_league)
    started_s = time.monotonic()
    await alice._search(where, 5)
    assert time.monotonic() - started_s < 60
    alice.p2p.calls.clear()
    assert await alice.fetch("7", lambda body: True) is None
    assert len(alice.p2p.calls) <= 12
    assert await alice.meet(bob.p2p.peer_id)


async def test_who_names_itself_at_a_thousand_places_is_asked_once():
    alice, bob, mallory = await trio()
    dice = random.Random(1)

    async def everywhere(request, context):
        places = [dice.randbytes(20) for _ in range(20)]
        result = dht_pb2.FindResult(nearest_node_ids=places, nearest_peer_ids=[mallory.p2p.peer_id.to_bytes()] * 20)
        return dht_pb2.FindResponse(results=[result])

    mallory.p2p.answer("find", everywhere)
    alice.p2p.calls.clear()
    found = await alice._search(key_id("7"), 5)
    assert set(found) == {bob.p2p.peer_id, mallory.p2p.peer_id}
    assert alice.p2p.calls.count((mallory.p2p.peer_id, "find")) == 1


def test_who_names_silent_nodes_does_not_keep_us_from_those_we_know(monkeypatch):
    monkeypatch.setattr(dht_module, "MAX_SEARCH_S", 0.3)

    async def scenario():
        network = MemoryNetwork()
        names = ["alice", "mallory", *(f"sybil {number}" for number in range(8))]
        alice, mallory, *honest = await network.swarm(*names, rules=genrl.RULES)
        places = [node_id_of(dht.p2p.peer_id) for dht in honest]
        keys = map(key_id, map(str, range(1000)))
        where = next(
            key for key in keys if node_id_of(mallory.p2p.peer_id) ^ key < min(place ^ key for place in places)
        )
        mallory.p2p.answer("find", ever_nearer(where, random.Random(1)))
        alice._protocol.wait_timeout = 0.1
        real_call = type(alice.p2p).call_protobuf_handler

        async def stalls(self, peer_id, name, input, output_type):
            if peer_id not in network.nodes:
                await asyncio.sleep(3600)
            return await real_call(self, peer_id, name, input, output_type)

        monkeypatch.setattr(type(alice.p2p), "call_protobuf_handler", stalls)
        return len(set(await alice._search(where, 4)) - {mallory.p2p.peer_id})

    assert run_simulated(scenario) == 3


async def test_a_search_asks_few_nodes_and_a_read_no_more():
    network = MemoryNetwork()
    nodes = [await network.dht("alice")]
    for number in range(99):
        nodes.append(await network.dht(f"sybil {number}"))
        assert await nodes[-1].meet(nodes[0].p2p.peer_id)
    calls = []
    for node in nodes[50:]:
        node.p2p.calls.clear()
        answers = await node.read("7")
        assert len(answers) == 5  # four others, and itself
        calls.append(len(node.p2p.calls))
    assert sum(calls) / len(calls) < 7


async def test_our_own_word_counts_only_where_nobody_else_was_asked():
    alice, bob, mallory = await trio()
    assert len(await alice.store("7", ALICE, b"one", time.time() + SOON)) == 2
    bob.p2p.leave()
    mallory.p2p.leave()
    assert await alice.store("7", ALICE, b"two", time.time() + SOON + 1) == ()
    assert await alice.store("7", ALICE, b"two", time.time() + SOON + 2) == (True,)


def test_a_client_stores_and_reads_and_keeps_nothing():
    async def scenario():
        network = MemoryNetwork()
        bob = await network.dht("bob", rules=genrl.RULES)
        client = await network.dht("alice", rules=genrl.RULES, serve=False)
        assert await client.store("7", ALICE, b"one", time.time() + SOON) == ()
        assert await client.meet(bob.p2p.peer_id)
        assert bob.num_neighbours() == 0
        assert await client.store("7", ALICE, b"one", time.time() + SOON) == (True,)
        (answer,) = await client.read("7")
        return answer[ALICE].value

    run(scenario)


@pytest.mark.parametrize("address", ["", "127.0.0.1"], ids=["anywhere", "on one machine"])
async def test_forty_nodes_find_the_same_replicas(address):
    network = MemoryNetwork()
    first = await network.dht("alice", address=address)
    nodes = [first]
    for number in range(39):
        node = await network.dht(f"sybil {number}", address=address)
        assert await node.meet(first.p2p.peer_id)
        nodes.append(node)
    where = key_id("7")
    true = sorted(network.nodes, key=lambda peer: node_id_of(peer) ^ where)[:3]
    agreed = 0
    for node in nodes:
        found = [peer or node.p2p.peer_id for peer in await node._nearest(where, 3)]
        agreed += found == true
    assert agreed >= 38
    assert 20 < first.estimate_size() < 80


async def test_nodes_may_be_counted_while_another_thread_adds_one():
    (alice,) = await MemoryNetwork().swarm("alice")
    known = alice._protocol.routing_table.uid_to_peer_id

    class Joining:
        def to_base58(self):
            known[DHTID.generate()] = self
            return "bob"

    known[DHTID.generate()] = Joining()
    assert alice.neighbours() == ["bob"]


async def test_nodes_that_have_gone_are_forgotten_and_not_asked_again_at_once():
    network = MemoryNetwork()
    alice, bob, carol = await network.swarm("alice", "bob", "carol")
    carol.p2p.leave()
    await alice.look_around()
    assert alice.neighbours() == [bob.p2p.peer_id.to_base58()]
    alice.p2p.calls.clear()
    await alice.look_around()  # bob still names carol
    assert carol.p2p.peer_id not in [peer for peer, _ in alice.p2p.calls]
    network.nodes[carol.p2p.peer_id] = carol.p2p
    await carol.look_around()
    await alice.look_around()
    assert alice.num_neighbours() == 2


async def test_a_node_that_draws_its_place_is_met_and_shows_the_way_but_keeps_nothing_of_ours():
    """Such as a bootnode of plain hivemind."""
    network = MemoryNetwork()
    plain = await network.dht("sybil bootnode", rules=genrl.RULES)
    plain._protocol.node_info = dht_pb2.NodeInfo(node_id=b"x" * 20)
    alice, bob = await network.dht("alice"), await network.dht("bob")
    for node in (alice, bob):
        assert await node.meet(plain.p2p.peer_id)
    assert bob.neighbours() == [ALICE]
    assert alice.neighbours() == [bob.p2p.peer_id.to_base58()]


def test_a_hostile_peer_id_names_no_place():
    assert node_id_of(PeerID(b"")) != node_id_of(PeerID(b"\0"))


def test_a_node_that_names_an_id_of_another_length_is_objected_to():
    async def call_ping(peer_id, validate):
        DHTID.from_bytes(bytes([255]) * 21)

    node = Dht(SimpleNamespace(node_id=None, p2p=None, call_ping=call_ping), None, None)
    assert asyncio.run(node.objection(None)) == "it names a malformed node id"
