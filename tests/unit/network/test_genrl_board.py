"""The board of GenRL's format, where nothing need be signed, over a network in memory."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import genrl
from codezero.network.dht.dht import key_id
from codezero.network.dht.dictionary import pack_dictionary
from codezero.network.genrl import GenrlBoard
from codezero.network.wire import WireError
from codezero.types import RoundId
from tests.unit.network.dht.memory_p2p import MemoryNetwork, publish, run
from tests.unit.network.wire_builders import SWARM, bin_, group, identity
from tests.unit.network.wire_builders import genrl as record

ROUND = RoundId(number=7)
ALICE, BOB = identity("alice").peer_id, identity("bob").peer_id


def board(name: str, instance: str = "0" * 16, window: int = 2) -> GenrlBoard:
    return GenrlBoard(SWARM, identity(name), instance, window)


async def swarm(*names: str):
    return await MemoryNetwork().swarm(*names, rules=genrl.RULES)


def shows(dht, entries, ttl_s: float = 600.0, key: str = "7") -> None:
    """Makes a replica show these (peer id, what lies in the DHT) for a round."""
    packed = [(name, value, time.time() + ttl_s) for name, value in entries]

    async def answer(request, context):
        found = request.keys[0] == key_id(key).to_bytes()
        value = pack_dictionary(packed if found else [])
        return dht_pb2.FindResponse(results=[dht_pb2.FindResult(type=dht_pb2.FOUND_DICTIONARY, value=value)])

    dht.p2p.answer("find", answer)


def unsigned(question: str) -> bytes:
    """As GenRL's own nodes publish."""
    fields = msgspec.msgpack.decode(record([group(question=question)], round_number=7))
    for payloads in fields.values():
        for payload in payloads:
            payload["metadata"] = None
    return msgspec.msgpack.encode(fields)


async def taken(one: GenrlBoard, dht):
    """Questions of what can be taken, by peer id, and why the rest cannot."""
    sight = await one.look(dht, ROUND)
    found, problems = {}, {}
    for notice in sight.notices:
        try:
            groups, dropped = await one.take(dht, notice)
            found[notice.peer_id] = [one.task.question for one in groups]
            problems[notice.peer_id] = [reason.value for reason in dropped]
        except WireError as error:
            problems[notice.peer_id] = error.reason.value
    return found, problems, sight


async def test_what_one_publishes_another_sees_and_takes():
    alice, bob = await swarm("alice", "bob")
    assert await publish(board("alice"), alice, ROUND, [group(ALICE, "one")], 600.0)
    one = board("bob")
    found, problems, sight = await taken(one, bob)
    assert (found, problems) == ({ALICE: ["one"]}, {ALICE: []})
    assert [(notice.address, notice.age) for notice in sight.notices] == [("10.0.0.1", 0)]
    assert not one.duplicate_identity


@pytest.mark.parametrize(
    "poison",
    [
        *(b"\xc1", b"", b"\xff" * 1000, b"\x91" * 3000, msgspec.msgpack.encode("text"), msgspec.msgpack.encode([1])),
        msgspec.msgpack.encode(b"\xff" * (300 << 10)),
    ],
    ids=["no msgpack", "nothing", "junk", "nested", "text", "list", "giant"],
)
async def test_a_poisoned_subkey_hides_nobody_and_keeps_nobody_waiting(poison):
    """hivemind's own DHTNode.get waits for ever on the first of these."""
    reader, replica = await swarm("reader", "replica")
    shows(replica, [(ALICE, poison), (BOB, bin_(unsigned("of bob")))])
    assert (await asyncio.wait_for(taken(board("reader"), reader), 20))[0] == {BOB: ["of bob"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "malformed"),
        (b"\xc1", "malformed"),
        (b"\x91" * 3000, "malformed"),
        (msgspec.msgpack.encode({"x": [1]}), ["malformed"]),
        (msgspec.msgpack.encode({1: []}), "malformed"),
        (msgspec.msgpack.encode({str(k): [] for k in range(100)}), "malformed"),
        (record([group(ALICE)], round_number=6), ["wrong_round"]),
        (record([group(ALICE)], swarm="another"), ["wrong_swarm"]),
        (record([group(BOB)], signer=identity("bob")), ["wrong_peer"]),
    ],
    ids=["nothing", "no msgpack", "nested", "wrong types", "wrong keys", "many", "other round", "other swarm", "liar"],
)
async def test_what_cannot_be_used_is_dropped_with_its_reason(content, reason):
    reader, replica = await swarm("reader", "replica")
    shows(replica, [(ALICE, bin_(content)), (BOB, bin_(unsigned("of bob")))])
    found, problems, _ = await taken(board("reader"), reader)
    assert problems[ALICE] == reason
    assert found[BOB] == ["of bob"]


@pytest.mark.parametrize("name", ["", "@", "../../etc/passwd", "\x1b[2J", "0OIl", " Qm"])
async def test_a_subkey_that_is_no_peer_id_is_dropped(name):
    reader, replica = await swarm("reader", "replica")
    shows(replica, [(name, bin_(unsigned("hello")))])
    found, _, sight = await taken(board("reader"), reader)
    assert found == {}
    assert all(claimed.isprintable() for claimed, _ in sight.rejected)
    assert {reason.value for _, reason in sight.rejected} == (set() if name == "@" else {"malformed"})


def test_a_lying_replica_cannot_replace_what_others_show():
    async def scenario(lie: bytes, ttl_s: float):
        reader, honest_1, honest_2, liar = await swarm("reader", "sybil 1", "sybil 2", "sybil liar")
        for replica in (honest_1, honest_2):
            shows(replica, [(ALICE, bin_(unsigned("true")))])
        shows(liar, [(ALICE, bin_(lie))], ttl_s)
        return (await taken(board("reader"), reader))[0]

    for lie in (b"junk", unsigned("false")):
        for ttl_s in (10.0, 3600.0, 1e9):
            assert run(lambda lie=lie, ttl_s=ttl_s: scenario(lie, ttl_s)) == {ALICE: ["true"]}


async def test_what_is_signed_stands_before_what_is_not_though_all_replicas_but_one_lie():
    reader, honest, liar_1, liar_2 = await swarm("reader", "sybil honest", "sybil 1", "sybil 2")
    shows(honest, [(ALICE, bin_(record([group(ALICE, "true")])))])
    for liar in (liar_1, liar_2):
        shows(liar, [(ALICE, bin_(unsigned("false")))])
    assert (await taken(board("reader"), reader))[0] == {ALICE: ["true"]}


async def test_what_was_taken_is_no_news_when_a_replica_adds_a_forged_version():
    """Or a peer would count as heard before it has published in this round."""
    alice, bob, mallory = await swarm("alice", "bob", "mallory")
    one = board("bob")
    assert await publish(board("alice"), alice, ROUND, [group(ALICE, "task")], 600.0)
    assert (await taken(one, bob))[0] == {ALICE: ["task"]}
    shows(mallory, [(ALICE, bin_(b"forged"))])
    found, problems, _ = await taken(one, bob)
    assert found == {}
    assert problems == {ALICE: "duplicate"}


async def test_a_signed_record_that_is_put_there_again_after_it_has_expired_is_stale(monkeypatch):
    alice, bob = await swarm("alice", "bob")
    with monkeypatch.context() as before:
        before.setattr(genrl, "TTL_S", -1.0)
        old = board("alice").pack(ROUND, [group(ALICE, "one")])
    assert any(await alice.store("7", ALICE, old, time.time() + 600.0))
    found, problems, _ = await taken(board("bob"), bob)
    assert (found, problems) == ({}, {ALICE: "stale"})


async def test_a_plain_value_in_the_way_of_a_round_is_not_kept():
    alice, mallory = await swarm("alice", "mallory")
    assert not any(await mallory.store("7", None, b"in the way", time.time() + 3600))
    assert await publish(board("alice"), alice, ROUND, [group(ALICE, "task")], 600.0)


@pytest.mark.parametrize(("window", "number", "ages"), [(1, 7, {7: 0}), (2, 7, {7: 0, 6: 1}), (9, 1, {1: 0, 0: 1})])
async def test_the_last_rounds_of_the_window_count(window, number, ages):
    reader, writer = await swarm("reader", "writer")
    names = {}
    for published in range(number + 1):
        own = f"peer {published}"
        names[identity(own).peer_id] = published
        one = GenrlBoard(SWARM, identity(own), "0" * 16, 2)
        assert await publish(one, writer, RoundId(number=published), [group(identity(own).peer_id)], 600.0)
    sight = await board("reader", window=window).look(reader, RoundId(number=number))
    assert {names[notice.peer_id]: notice.age for notice in sight.notices} == ages


def test_a_duplicate_identity_has_signed_with_our_key_after_we_started():
    async def scenario(instance: str, published_at_s: float, signer: str = "alice") -> bool:
        reader, replica = await swarm("alice", "replica")
        own = record(
            [group(identity(signer).peer_id)], identity(signer), instance=instance, published_at_s=published_at_s
        )
        shows(replica, [(ALICE, bin_(own))])
        one = board("alice")
        await one.look(reader, ROUND)
        return one.duplicate_identity

    later = time.time() + 100
    assert run(lambda: scenario("f" * 16, later))
    assert not run(lambda: scenario("0" * 16, later))  # ourselves
    assert not run(lambda: scenario("f" * 16, 1e9))  # ourselves before a crash in the same round
    assert not run(lambda: scenario("f" * 16, later, signer="bob"))


async def test_of_two_with_one_key_the_later_sees_the_other_though_it_takes_its_place():
    (alice,) = await swarm("alice")
    one, two = board("alice"), board("alice", instance="f" * 16)
    seen_duplicates = []
    for by in (one, two, one):
        assert await publish(by, alice, ROUND, [group(ALICE)], 600.0)
        await by.look(alice, ROUND)
        seen_duplicates.append(by.duplicate_identity)
        by.finished()
    assert seen_duplicates == [False, True, True]


async def test_anybody_may_publish_unsigned_under_our_peer_id_and_it_is_no_duplicate_identity():
    reader, replica = await swarm("alice", "replica")
    shows(replica, [(ALICE, bin_(unsigned("not mine")))])
    one = board("alice")
    sight = await one.look(reader, ROUND)
    assert one.duplicate_identity is False
    assert sight.notices == []


def test_peer_ids_of_all_kinds_are_peers():
    for raw in (b"\x12\x20" + b"x" * 32, b"\x00\x24\x08\x01\x12\x20" + b"x" * 32):
        assert genrl._peer_id(PeerID(raw).to_base58()) == PeerID(raw)
