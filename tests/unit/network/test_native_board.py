"""The native board among replicas that lie, over a network in memory."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import msgspec
import pytest
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import directory, native, wire
from codezero.network.dht.dht import Dht
from codezero.network.dht.dictionary import pack_dictionary
from codezero.network.dht.server import OWNERS
from codezero.network.native import NativeBoard
from codezero.network.wire import Reason
from codezero.types import RoundId
from tests.unit.network.dht.asker import item_of
from tests.unit.network.dht.memory_p2p import MemoryNetwork, publish, run
from tests.unit.network.wire_builders import SWARM, announce, group, identity

ROUND = RoundId(number=7)
ALICE, BOB = identity("alice").peer_id, identity("bob").peer_id
KEY = directory.directory_key(SWARM, wire.ROLLOUTS, "")
MINUTES_S = 600.0


def board(name: str, swarm: str = SWARM, instance: str = "00112233aabbccdd", window: int = 2) -> NativeBoard:
    return NativeBoard(swarm, identity(name), instance, window)


def signed(name: str, ago_s: float = 0.0, body: bytes = b"body", swarm: str = SWARM, **changes):
    now = time.time() - ago_s
    fields = {"published_at_s": now, "expires_at_s": now + MINUTES_S, "swarm": swarm, **changes}
    one = announce(body, peer_id=identity(name).peer_id, **fields)
    return wire.sign_announcement(one, identity(name))


def shows(dht: Dht, entries, owners=None) -> None:
    """Makes a replica show these (peer id, content) for any directory, brought by these addresses."""
    packed = [(name, msgspec.msgpack.encode(content), time.time() + MINUTES_S) for name, content in entries]
    if owners is not None:
        packed.append((OWNERS, msgspec.msgpack.encode(owners), time.time() + MINUTES_S))

    async def answer(request, context):
        result = dht_pb2.FindResult(type=dht_pb2.FOUND_DICTIONARY, value=pack_dictionary(packed))
        return dht_pb2.FindResponse(results=[result])

    dht.p2p.answer("find", answer)


async def seen(entries, owners=None, by: NativeBoard | None = None):
    """What a reader sees of a replica that shows these."""
    reader, replica = await MemoryNetwork().swarm("reader", "replica")
    shows(replica, entries, owners)
    return await (by or board("reader")).look(reader, ROUND)


async def test_what_one_publishes_another_sees_and_takes():
    alice, bob = await MemoryNetwork().swarm("alice", "bob")
    groups = [group(ALICE, "one"), group(ALICE, "two")]
    assert await publish(board("alice"), alice, ROUND, groups, MINUTES_S)
    one = board("bob")
    sight = await one.look(bob, ROUND)
    (notice,) = sight.notices
    assert (notice.peer_id, notice.address, notice.age) == (ALICE, "10.0.0.1", 0)
    assert await one.take(bob, notice) == (tuple(groups), ())
    assert (sight.rejected, one.duplicate_identity) == (set(), False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda: b"", Reason.WRONG_VERSION),
        (lambda: b"\x03" + b"x" * 100, Reason.WRONG_VERSION),
        (lambda: b"\x02\xc1", Reason.MALFORMED),
        (lambda: b"\x02" + b"\x91" * 2000, Reason.MALFORMED),
        (lambda: b"\x02" + b"\xa4\xff\xfe\xfd\xfc", Reason.MALFORMED),
        (lambda: signed("alice").replace(b"swarm", b"\xff\xfe\xfd\xfc\xfb"), Reason.MALFORMED),
        (lambda: b"\x02" + msgspec.msgpack.encode({"content": 7, "public_key": [], "x": {}}), Reason.MALFORMED),
        (lambda: b"x" * 300_00, Reason.OVERSIZED),
        (lambda: signed("bob"), Reason.WRONG_PEER),
        (lambda: signed("alice", swarm="another"), Reason.WRONG_SWARM),
        (lambda: signed("alice")[:-1] + b"\0", Reason.BAD_SIGNATURE),
        (lambda: signed("alice", ago_s=700.0), Reason.STALE),
        (lambda: signed("alice", ago_s=1e8), Reason.STALE),
        (lambda: signed("alice", ago_s=-100.0), Reason.STALE),
    ],
    ids=[
        "nothing",
        "other version",
        "no msgpack",
        "deep nesting",
        "no UTF-8",
        "no UTF-8 within",
        "wrong types",
        "giant",
        "another's",
        "other swarm's",
        "tampered",
        "expired",
        "years old",
        "of the future",
    ],
)
def test_what_a_replica_makes_up_is_dropped_with_its_reason(content, reason):
    """Contents are made here and not when this file is read: what lies ahead by then is past by now."""
    sight = run(lambda: seen([(ALICE, content()), (BOB, signed("bob"))]))
    assert [notice.peer_id for notice in sight.notices] == [BOB]
    assert sight.rejected == {(ALICE, reason)}


def test_a_new_node_takes_no_announcement_that_has_expired_however_few_rounds_it_has_played():
    assert run(lambda: seen([(ALICE, signed("alice", ago_s=MINUTES_S + 1))])).notices == []


async def test_a_lying_replica_hides_nobody():
    alice, reader, liar = await MemoryNetwork().swarm("alice", "reader", "liar")
    assert await publish(board("alice"), alice, ROUND, [group(ALICE)], MINUTES_S)
    shows(liar, [(ALICE, signed("alice", ago_s=100.0, body=b"an older one")), (BOB, b"junk")])
    one = board("reader")
    (notice,) = (await one.look(reader, ROUND)).notices
    groups, _ = await one.take(reader, notice)
    assert groups == (group(ALICE),)


async def address_of_alice(*claims: str | None, at: str = "") -> str:
    """As the reader has it when so many replicas say so, all at one address if it is given, and it is not connected to
    her."""
    network = MemoryNetwork()
    reader = await network.dht("reader")
    replicas = [await network.dht(f"sybil {number}", address=at) for number in range(len(claims))]
    for replica in replicas:
        await reader.meet(replica.p2p.peer_id)
    content = signed("alice")
    for replica, claim in zip(replicas, claims, strict=True):
        shows(replica, [(ALICE, content)], None if claim is None else {ALICE: claim})
    (notice,) = (await board("reader").look(reader, ROUND)).notices
    return notice.address


@pytest.mark.parametrize(
    ("claims", "address"),
    [
        (["1.1.1.1", "1.1.1.1", "6.6.6.6"], "1.1.1.1"),
        (["6.6.6.6", "1.1.1.1", "1.1.1.1"], "1.1.1.1"),
        (["1.1.1.1", "1.1.1.1"], "1.1.1.1"),
        (["6.6.6.6"], "unknown"),
        (["6.6.6.6", None], "unknown"),
        (["6.6.6.6", "7.7.7.7", "8.8.8.8"], "unknown"),
        ([None, None, None], "unknown"),
    ],
)
def test_no_single_replica_says_which_address_a_peer_has(claims, address):
    assert run(lambda: address_of_alice(*claims)) == address


def test_replicas_at_one_address_are_one_witness_however_many_they_are():
    assert run(lambda: address_of_alice("1.1.1.1", "1.1.1.1", "1.1.1.1", at="6.6.6.6")) == "unknown"


@pytest.mark.parametrize(
    "text", ["anything", "1.1.1.1 ", "01.1.1.1", "1.1.1.1/32", "relay", "relay Qm", "", "::1", "::/0"]
)
def test_witnesses_can_name_nothing_that_is_no_address(text):
    assert run(lambda: address_of_alice(text, text)) == "unknown"


@pytest.mark.parametrize("text", ["1.1.1.1", "2001:db8:1:2::/64", "relay 1.1.1.1", "relay 2001:db8:1:2::/64"])
def test_witnesses_can_name_any_address(text):
    assert run(lambda: address_of_alice(text, text)) == text


async def test_what_we_saw_on_a_connection_stands_before_what_replicas_say():
    alice, reader, one, two = await MemoryNetwork().swarm("alice", "reader", "sybil 1", "sybil 2")
    for liar in (one, two):
        shows(liar, [(ALICE, signed("alice"))], {ALICE: "6.6.6.6"})
    assert alice.p2p.address == "10.0.0.1"
    (notice,) = (await board("reader").look(reader, ROUND)).notices
    assert notice.address == "10.0.0.1"


def test_a_replica_does_not_vote_twice_by_serving_two_shards(monkeypatch):
    monkeypatch.setattr(directory, "shards_to_read", lambda num_nodes, dice: ["", "0", "1", "00"])
    assert run(lambda: address_of_alice("6.6.6.6")) == "unknown"


def test_a_duplicate_identity_is_one_that_published_after_we_started():
    async def scenario(ago_s: float, instance: str) -> bool:
        one = board("alice")
        await seen([(ALICE, signed("alice", ago_s, instance=instance))], by=one)
        return one.duplicate_identity

    assert run(lambda: scenario(-1.0, "ffffffffffffffff"))
    assert not run(lambda: scenario(-1.0, "00112233aabbccdd"))  # ourselves
    assert not run(lambda: scenario(10.0, "ffffffffffffffff"))  # ourselves before a restart


async def test_of_two_with_one_key_the_later_sees_the_other_though_it_takes_its_place():
    (alice,) = await MemoryNetwork().swarm("alice")
    one, two = board("alice"), board("alice", instance="f" * 16)
    seen_duplicates = []
    for number, by in enumerate((one, two, one, one)):
        assert await publish(by, alice, RoundId(number=number), [group(ALICE, str(number))], MINUTES_S)
        await by.look(alice, RoundId(number=number))
        seen_duplicates.append(by.duplicate_identity)
        by.finished()
    assert seen_duplicates == [False, True, True, False]


def test_nobody_pretends_that_we_have_a_duplicate():
    alice, of_bob = board("alice"), signed("bob", -1.0, instance="f" * 16)
    run(lambda: seen([(ALICE, of_bob)], by=alice))
    assert not alice.duplicate_identity


async def test_age_counts_our_own_exchanges_since_it_was_published():
    reader, replica = await MemoryNetwork().swarm("reader", "replica")
    shows(replica, [(ALICE, signed("alice"))])
    one = board("reader", window=3)
    ages = []
    for _ in range(5):
        await asyncio.sleep(0.01)
        ages.append((await one.look(reader, ROUND)).notices[0].age)
        one.finished()
    assert ages == [0, 1, 2, None, None]


async def test_a_clock_that_was_set_back_makes_nothing_stale(monkeypatch):
    reader, replica = await MemoryNetwork().swarm("reader", "replica")
    one = board("reader", window=2)
    real_time = time.time
    ages = []
    for fast_s in (50.0, 50.0, 0.0, 0.0):
        shows(replica, [(ALICE, signed("alice"))])
        monkeypatch.setattr(native, "time", SimpleNamespace(time=lambda fast_s=fast_s: real_time() + fast_s))
        ages.append((await one.look(reader, ROUND)).notices[0].age)
        one.finished()
    assert ages == [0, 1, 0, 0]


async def test_nodes_of_a_machine_whose_clock_was_set_back_still_see_what_the_others_publish(monkeypatch):
    alice, bob = await MemoryNetwork().swarm("alice", "bob")
    one, real_time = board("alice"), time.time
    monkeypatch.setattr(time, "time", lambda: real_time() + 3600.0)
    assert await publish(one, alice, ROUND, [group(ALICE, "before")], MINUTES_S)
    one.finished()
    monkeypatch.setattr(time, "time", real_time)
    assert await publish(one, alice, RoundId(number=8), [group(ALICE, "after")], MINUTES_S)
    reader = board("bob")
    (notice,) = (await reader.look(bob, RoundId(number=8))).notices
    assert await reader.take(bob, notice) == ((group(ALICE, "after"),), ())


async def test_what_was_published_while_we_fetched_is_fresh_in_the_next_round():
    """With a window of one round nothing may fall between two of them."""
    reader, replica = await MemoryNetwork().swarm("reader", "replica")
    one = board("reader", window=1)
    await one.look(reader, ROUND)
    await asyncio.sleep(0.01)
    shows(replica, [(ALICE, signed("alice"))])
    await asyncio.sleep(0.01)
    one.finished()
    assert (await one.look(reader, RoundId(number=8))).notices[0].age == 0


async def test_a_restarted_node_with_quicker_rounds_is_heard_at_once():
    alice, bob = await MemoryNetwork().swarm("alice", "bob")
    assert await publish(board("alice"), alice, ROUND, [group(ALICE, "before")], 3600.0)
    assert await publish(board("alice", instance="f" * 16), alice, ROUND, [group(ALICE, "after")], 120.0)
    one = board("bob")
    (notice,) = (await one.look(bob, ROUND)).notices
    (found,), _ = await one.take(bob, notice)
    assert found.task.question == "after"


async def test_a_publisher_whose_shard_is_full_goes_one_bit_deeper():
    (alice,) = await MemoryNetwork().swarm("alice")
    for number in range(64):
        name = PeerID(bytes([18, 32, number])).to_base58()
        item = item_of(KEY, name, b"x" * 2000)
        assert alice._server._records.add(item, (0.0, 0.0), f"address {number}")
    assert await publish(board("alice"), alice, ROUND, [group(ALICE)], MINUTES_S)
    deeper = directory.directory_key(SWARM, wire.ROLLOUTS, directory.shard_of(SWARM, ALICE, 1))
    (found,) = await alice.read(deeper)
    assert set(found) == {directory.slot(ALICE)}


async def test_two_swarms_on_the_same_nodes_do_not_see_each_other():
    alice, bob = await MemoryNetwork().swarm("alice", "bob")
    assert await publish(board("alice", "swarm-a"), alice, ROUND, [group(ALICE)], MINUTES_S)
    sight = await board("bob", "swarm-b").look(bob, ROUND)
    assert sight.notices == []
    assert sight.rejected == set()
