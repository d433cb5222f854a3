"""What a server does not do for anybody: asked too much, too fast, or nonsense."""

from __future__ import annotations

import asyncio
import time

import pytest
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from codezero.network import genrl
from codezero.network.dht import server
from codezero.network.dht.dictionary import pack_dictionary
from tests.unit.network.dht.asker import PLAIN, Asker, body_key, is_refused, item_of, key
from tests.unit.network.wire_builders import bin_


@pytest.mark.parametrize("columns", [{"keys": []}, {"subkeys": []}, {"values": [b""] * 3}, {"expiration_time": [1.0]}])
async def test_a_misaligned_request_stores_nothing(columns):
    asker = await Asker.create()
    records = [(body_key(body), PLAIN, bin_(body), time.time() + 60) for body in (b"one", b"two")]
    assert await is_refused(asker.store(*records, **columns), "not aligned")
    assert asker.server._records._records == {}


@pytest.mark.parametrize("raw", [b"", b"k", b"k" * 21, b"k" * 100_000], ids=len)
async def test_keys_and_node_ids_of_any_length_are_survived(raw):
    asker = await Asker.create()
    node = dht_pb2.NodeInfo(node_id=raw)
    too_long = len(raw) > 20
    find = dht_pb2.FindRequest
    assert await is_refused(asker.call("find", find(keys=[raw]), dht_pb2.FindResponse)) is too_long
    assert await is_refused(asker.call("find", find(keys=[b"k"], peer=node), dht_pb2.FindResponse)) is too_long
    assert await is_refused(asker.call("ping", dht_pb2.PingRequest(peer=node), dht_pb2.PingResponse)) is too_long
    request = dht_pb2.StoreRequest(peer=node)
    assert await is_refused(asker.call("store", request, dht_pb2.StoreResponse)) is too_long
    record = (raw, PLAIN, bin_(b"body"), time.time() + 60)
    assert await is_refused(asker.store(record)) is too_long
    assert asker.server._records._records == {}
    assert len(await asker.find("7")) == 1


async def test_an_answer_never_grows_beyond_what_a_message_may_have():
    asker = await Asker.create(genrl.RULES)
    names = [str(number) for number in range(40)]
    for name in names:
        for place in range(4):
            peer = PeerID(bytes([18, 32, place]) + name.encode()).to_base58()
            assert asker.server.store(item_of(name, peer, b"x" * (200 << 10)), f"address {name}")
    results = await asker.find(*names)
    assert sum(len(result.value) for result in results) < 4 << 20
    assert sum(result.type == dht_pb2.FOUND_DICTIONARY for result in results) == 4


async def test_a_peer_that_asks_too_much_is_refused_and_others_are_not(monkeypatch):
    monkeypatch.setattr(server, "RATE_PER_S", 0.0)
    asker = await Asker.create()
    other = await asker.another("trent", "7.7.7.7")
    names = [str(number) for number in range(100)]
    refused = [await is_refused(asker.find(*names), "too many requests") for _ in range(12)]
    assert refused == [False] * 9 + [True] * 3  # a thousand keys
    record = (body_key(b"b"), PLAIN, bin_(b"b"), time.time() + 60)
    assert await is_refused(asker.store(record, record), "too many requests")
    assert len(await other.find("7")) == 1
    monkeypatch.setattr(server, "RATE_PER_S", 1e9)
    assert not await is_refused(asker.find(*names))  # a moment later


async def test_the_entries_of_a_directory_count_each(monkeypatch):
    monkeypatch.setattr(server, "RATE_PER_S", 0.0)
    asker = await Asker.create(genrl.RULES)
    entries = [(f"peer {number}", bin_(b"x"), time.time() + 60) for number in range(60)]
    directory = (key("k"), DHTProtocol.IS_DICTIONARY, pack_dictionary(entries), time.time() + 60)
    refused = [await is_refused(asker.store(*[directory] * 4), "too many requests") for _ in range(6)]
    assert refused == [False] * 4 + [True] * 2  # a thousand entries


@pytest.mark.parametrize("count", [129, 5000])
async def test_too_many_keys_or_records_in_one_request(count):
    asker = await Asker.create()
    assert await is_refused(asker.find(*["k"] * count), "at most 128")
    assert await is_refused(asker.store(*[(key("k"), PLAIN, b"", time.time() + 60)] * count), "at most 128")


async def test_many_identities_of_one_address_share_its_rate(monkeypatch):
    monkeypatch.setattr(server, "PEERS_PER_ADDRESS", 2)
    monkeypatch.setattr(server, "RATE_PER_S", 0.0)
    asker = await Asker.create()
    names = [str(number) for number in range(100)]
    refused = 0
    for number in range(4):
        sybil = await asker.another(f"sybil {number}", "6.6.6.6")
        refused += sum([await is_refused(sybil.find(*names), "too many requests") for _ in range(9)])
    assert refused == 17  # of 36: twice a thousand keys are free
    other = await asker.another("trent", "7.7.7.7")
    assert len(await other.find("7")) == 1


async def test_a_busy_daemon_keeps_no_new_peer_from_storing_in_time(monkeypatch):
    monkeypatch.setattr(server, "MAX_ADDRESS_S", 0.05)
    asker = await Asker.create()
    asker.target.p2p.list_peers = asyncio.Event().wait  # never answers
    record = (body_key(b"body"), PLAIN, bin_(b"body"), time.time() + 60)
    assert await asyncio.wait_for(asker.store(record), 2) == [True]


async def with_bodies(count: int):
    """A server with so many bodies of 255 KiB, somebody who asks for them, and their keys."""
    asker = await Asker.create()
    names = [f"body {number}" for number in range(count)]
    for name in names:
        item = item_of(name, None, bytes(255 << 10))
        assert asker.server._records.add(item, (0.0, item.expires_at_s), f"address of {name}")
    return asker, names


async def sent_bytes(asker: Asker, names) -> int:
    return sum(len(result.value) for result in await asker.find(*names))


async def test_few_small_questions_do_not_get_many_large_answers(monkeypatch):
    monkeypatch.setattr(server, "PEERS_PER_ADDRESS", 2)
    monkeypatch.setattr(server, "RATE_PER_S", 0.0)
    asker, names = await with_bodies(13)
    one, two, three = [await asker.another(f"sybil {number}", "6.6.6.6") for number in range(3)]
    sent = [sum([await sent_bytes(by, names) for _ in range(30)]) for by in (one, two, three)]
    assert 15 << 20 < sent[0] < 16 << 20
    assert 30 << 20 < sum(sent) < 32 << 20  # all at one address
    assert await sent_bytes(await asker.another("trent", "7.7.7.7"), names[:1]) > 255 << 10


async def test_a_reader_that_asks_too_often_waits_for_its_turn_and_loses_nothing(monkeypatch):
    monkeypatch.setattr(server, "RATE_PER_S", 0.0)
    asker, names = await with_bodies(13)
    for _ in range(10):
        await sent_bytes(asker, names)
    assert await sent_bytes(asker, names) == 0
    monkeypatch.setattr(server, "RATE_PER_S", 1e9)
    assert await sent_bytes(asker, names) > 3 << 20


async def test_no_records_are_added_to_many_that_wait():
    asker, names = await with_bodies(13)
    askers = [await asker.another(f"sybil {number}", f"6.6.6.{number}") for number in range(20)]
    asker.target.p2p.pending.put_nowait("a message that the daemon has not taken")
    assert sum([await sent_bytes(one, names) for one in askers]) <= 32 << 20
    assert len(await asker.find("7")) == 1
    asker.target.p2p.pending.get_nowait()
    assert await sent_bytes(askers[-1], names) > 3 << 20


def test_rates_of_a_million_peers_are_not_remembered():
    rates = server._Rates()
    for number in range(10_000):
        rates.take(str(number), 1)
    assert len(rates._buckets) == 4096
