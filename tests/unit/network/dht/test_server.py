"""What a server stores and answers, asked by peers over a network in memory."""

from __future__ import annotations

import hashlib
import math
import time

import pytest

from codezero.network import directory, genrl, wire
from codezero.network.dht.dht import key_id
from codezero.network.dht.dictionary import pack_dictionary
from codezero.network.dht.server import OWNERS, read_owners
from tests.unit.network.dht.asker import PLAIN, Asker, body_key, is_stored, key, signed, slot, tag
from tests.unit.network.dht.memory_p2p import run
from tests.unit.network.dht.test_dictionary import nested, sent
from tests.unit.network.wire_builders import SWARM, bin_, identity


async def stored_with_ttl(ttl_s: float) -> bool:
    asker = await Asker.create()
    (stored,) = await asker.store((body_key(b"body"), PLAIN, bin_(b"body"), time.time() + ttl_s))
    return stored


@pytest.mark.parametrize("ttl_s", [30.0, 600.0, 3659.0])
def test_a_body_under_its_own_hash_is_stored(ttl_s):
    assert run(lambda: stored_with_ttl(ttl_s))


@pytest.mark.parametrize("ttl_s", [-1e9, -0.001, 3700.0, 1e12, math.inf, -math.inf, math.nan])
def test_a_record_must_expire_within_an_hour(ttl_s):
    assert not run(lambda: stored_with_ttl(ttl_s))


@pytest.mark.parametrize(("size", "fits"), [(256 << 10, True), ((256 << 10) + 12, False), (3 << 20, False)])
async def test_a_record_has_256_kib_at_most(size, fits):
    asker = await Asker.create()
    body = b"x" * size
    assert await asker.store((body_key(body), PLAIN, bin_(body), time.time() + 60)) == [fits]


async def test_an_announcement_is_stored_in_each_of_its_peers_shards_and_nowhere_else():
    asker = await Asker.create()
    value, _, expires_at_s = signed()
    own, alice = identity().peer_id, tag(slot())
    for bits in range(21):
        shard = key(directory.directory_key(SWARM, wire.ROLLOUTS, directory.shard_of(SWARM, own, bits)))
        assert await asker.store((shard, alice, value, expires_at_s)) == [True]
    other_half = str(1 - int(directory.shard_of(SWARM, own, 1)))
    for elsewhere in (
        directory.directory_key(SWARM, wire.ROLLOUTS, other_half),
        directory.directory_key("swarm-b", wire.ROLLOUTS, ""),
        directory.directory_key(SWARM, wire.ROLLOUTS, directory.shard_of(SWARM, own, 21)),
        "7",
    ):
        assert await asker.store((key(elsewhere), alice, value, expires_at_s)) == [False]


async def test_an_announcement_is_stored_under_its_own_topic_only():
    own, bob = identity().peer_id, identity("bob").peer_id
    topics = [wire.ROLLOUTS, wire.PROPOSALS, wire.feedback_to(bob), wire.feedback_to(own)]
    for topic in topics:
        asker = await Asker.create()
        value, _, expires_at_s = signed(topic=topic)
        for other in topics:
            where = key(directory.directory_key(SWARM, other))
            assert await asker.store((where, tag(slot()), value, expires_at_s)) == [other == topic]
        shard = directory.directory_key(SWARM, topic, directory.shard_of(SWARM, own, 1))
        assert await asker.store((key(shard), tag(slot()), value, expires_at_s)) == [topic == wire.ROLLOUTS]


def test_what_the_rules_refuse_is_not_stored():
    alice, own = slot(), identity().peer_id
    value, where, expires_at_s = signed()
    future, _, future_expiry = signed(published_ago_s=-120.0)
    soon = time.time() + 60
    refused = {
        "an announcement under another peer id": (key(where), tag(slot("mallory")), value, expires_at_s),
        **{
            f"an announcement under the subkey {name!r}": (key(where), tag(name), value, expires_at_s)
            for name in (own, f"{own}/1", f"{own}/3", f"{own}/2/2", f"{own}/02", "/2")
        },
        "an announcement that lives longer than signed": (key(where), tag(alice), value, expires_at_s + 1),
        "an announcement that lives less long than signed": (key(where), tag(alice), value, expires_at_s - 1),
        "an announcement of the future": (key(where), tag(alice), future, future_expiry),
        "an announcement without a subkey": (key(where), PLAIN, value, expires_at_s),
        "no announcement": (key(where), tag(alice), bin_(b"hello"), soon),
        "no msgpack": (key(where), tag(alice), b"\xc1", soon),
        "text instead of bytes": (key(where), tag(alice), tag("hello"), soon),
        "nothing": (key(where), tag(alice), b"", soon),
        "an empty body": (key(where), PLAIN, b"", soon),
        "a body under another hash": (body_key(b"one"), PLAIN, bin_(b"another"), soon),
        "a body under a subkey": (body_key(b"body"), tag(alice), bin_(b"body"), soon),
        "a body with a tail": (body_key(b"body"), PLAIN, bin_(b"body") + b"\0", soon),
        "the entry that keepers add": (key(where), tag(OWNERS), value, expires_at_s),
        "a damaged signature": (key(where), tag(alice), value[:-1] + bytes([value[-1] ^ 1]), expires_at_s),
    }
    for what, record in refused.items():
        assert not run(lambda record=record: is_stored(record)), what


@pytest.mark.parametrize(
    "junk",
    [b"\xc1", b"\x07", b"\xa2\xff\xfe", tag(b"bytes"), tag(["list"]), tag({}), tag("x" * 129), nested(400), b"\xdf"],
)
def test_a_junk_subkey_is_refused(junk):
    value, where, expires_at_s = signed()
    assert not run(lambda: is_stored((key(where), junk, value, expires_at_s)))
    assert not run(lambda: is_stored((key("7"), junk, value, expires_at_s), genrl.RULES))


@pytest.mark.parametrize("junk", [b"", b"\xc1", nested(400), sent([[1, 2]]), sent([], maxsize=None), tag({"a": 1})])
def test_a_junk_directory_is_refused(junk):
    assert not run(lambda: is_stored((key("7"), b"", junk, time.time() + 60), genrl.RULES))


async def test_an_honest_entry_in_a_directory_handed_on_is_stored_though_others_are_junk():
    asker = await Asker.create()
    value, where, expires_at_s = signed()
    handed = sent([["QmJunk", b"x", expires_at_s], [slot(), value, expires_at_s]], maxsize=1)
    assert await asker.store((key(where), b"", handed, expires_at_s)) == [False]
    assert set(await asker.entries(where)) == {slot(), OWNERS}


def test_a_replayed_announcement_never_replaces_a_newer_one():
    async def scenario(newer_ttl_s):
        asker = await Asker.create()
        old, where, old_expiry = signed(published_ago_s=10.0, ttl_s=3000.0)
        new, _, new_expiry = signed(ttl_s=newer_ttl_s)
        alice = tag(slot())
        assert await asker.store((key(where), alice, old, old_expiry)) == [True]
        assert await asker.store((key(where), alice, new, new_expiry)) == [True]
        assert await asker.store((key(where), alice, old, old_expiry)) == [False]
        assert (await asker.entries(where))[slot()] == new

    run(lambda: scenario(60.0))  # also where the newer one expires earlier, as after a restart with quick rounds
    run(lambda: scenario(3500.0))


async def test_a_body_stored_again_with_a_short_life_lives_on():
    asker = await Asker.create()
    long, short = time.time() + 600, time.time() + 10
    for expires_at_s in (long, short):
        assert await asker.store((body_key(b"body"), PLAIN, bin_(b"body"), expires_at_s)) == [True]
    (result,) = await asker.find(directory.body_key(hashlib.sha256(b"body").digest()))
    assert result.expiration_time == long
    assert result.value == bin_(b"body")


async def test_a_directory_says_which_address_brought_each_entry():
    asker = await Asker.create()
    other = await asker.another("trent", "7.7.7.7")
    for who, name in ((asker, "alice"), (other, "bob")):
        value, where, expires_at_s = signed(name)
        assert await who.store((key(where), tag(slot(name)), value, expires_at_s)) == [True]
    found = await asker.entries(directory.directory_key(SWARM, wire.ROLLOUTS, ""))
    assert read_owners(found[OWNERS]) == {slot("alice"): "6.6.6.6", slot("bob"): "7.7.7.7"}


async def test_the_address_of_a_peer_stays_with_its_entry_when_another_one_stores_it_again():
    asker = await Asker.create()
    other = await asker.another("trent", "7.7.7.7")
    value, where, expires_at_s = signed()
    for who in (asker, other):
        assert await who.store((key(where), tag(slot()), value, expires_at_s)) == [True]
    assert read_owners((await asker.entries(where))[OWNERS]) == {slot(): "6.6.6.6"}


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xc1", b"\x91" * 9000, tag(["a"]), tag({1: "a"}), tag({"a": None}), tag({"a": "x" * 20_000}), b"\xa1\xff"],
)
def test_badly_made_up_owners_are_no_owners(raw):
    assert read_owners(raw) == {}


def test_genrl_keeps_directory_entries_of_peers_only():
    alice = identity().peer_id
    soon = time.time() + 60
    for record, fits in (
        ((key("7"), tag(alice), bin_(b"anything"), soon), True),
        ((key("7"), tag(alice), b"\xc1 no msgpack", soon), True),
        ((key("7"), PLAIN, bin_(b"in the way"), soon), False),
        ((key("7"), tag("@"), bin_(b"x"), soon), False),
        ((key("7"), tag("../../etc"), bin_(b"x"), soon), False),
        ((key("7"), tag(""), bin_(b"x"), soon), False),
        ((key("7"), tag(alice + "\n"), bin_(b"x"), soon), False),
    ):
        assert run(lambda record=record: is_stored(record, genrl.RULES)) is fits, record


async def test_in_genrl_what_a_peer_brought_itself_stays_before_what_others_say_it_has():
    asker = await Asker.create(genrl.RULES)
    victim = await asker.another("alice", "1.1.1.1")
    alice = identity().peer_id
    assert await asker.store((key("7"), tag(alice), bin_(b"forged early"), time.time() + 3000)) == [True]
    assert await victim.store((key("7"), tag(alice), bin_(b"true"), time.time() + 600)) == [True]
    assert await asker.store((key("7"), tag(alice), bin_(b"forged late"), time.time() + 3600)) == [False]
    assert await asker.entries("7") == {alice: bin_(b"true")}
    assert await victim.store((key("7"), tag(alice), bin_(b"newer"), time.time() + 601)) == [True]


async def test_hivemind_reads_the_directories_we_send():
    asker = await Asker.create(genrl.RULES)
    alice = identity().peer_id
    await asker.store((key("7"), tag(alice), bin_(b"content"), time.time() + 60))
    found = await asker.peer._protocol.call_find(asker.target.p2p.peer_id, [key_id("7")])
    assert found[key_id("7")][0].value.data[alice].value == bin_(b"content")


async def test_a_directory_as_hivemind_hands_it_on_is_stored():
    asker = await Asker.create(genrl.RULES)
    alice, bob, soon = identity().peer_id, identity("bob").peer_id, time.time() + 60
    handed = pack_dictionary([(alice, bin_(b"a"), soon), (bob, bin_(b"b"), soon)])
    assert await asker.store((key("7"), b"", handed, soon)) == [True]
    assert await asker.entries("7") == {alice: bin_(b"a"), bob: bin_(b"b")}
