"""10,000 requests to store that nobody honest would send, made of honest ones."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping

from hivemind.dht.routing import DHTID

from codezero.network import directory, genrl, wire
from codezero.network.dht import records, server
from codezero.network.dht.dictionary import pack_dictionary
from codezero.network.dht.records import OfferedRecord
from tests.unit.network.dht.asker import PLAIN, Asker, body_key, is_refused, key, signed, slot, tag
from tests.unit.network.dht.memory_p2p import run
from tests.unit.network.dht.test_dictionary import nested, sent
from tests.unit.network.wire_builders import SWARM, bin_, group, identity
from tests.unit.network.wire_builders import genrl as genrl_record

NUM_REQUESTS = 10_000
NAMES = ("alice", "bob", "mallory")


def mutated(raw: bytes, dice: random.Random) -> bytes:
    raw = bytearray(raw)
    for _ in range(dice.choice([0, 1, 1, 3])):
        where = dice.randrange(len(raw) + 1)
        change = dice.choice(["set", "cut", "insert", "repeat"])
        if change == "set" and where < len(raw):
            raw[where] = dice.randrange(256)
        elif change == "cut":
            del raw[where : where + dice.randrange(1, 40)]
        elif change == "insert":
            raw[where:where] = dice.randbytes(dice.randrange(1, 9))
        else:
            raw[where:where] = raw[where : where + 8] * dice.randrange(3)
    return bytes(raw)


def hostile_records(dice: random.Random, subkeys: Mapping[str, str]):
    """Any part of an honest record with any part of another one, mutated or not."""
    kinds = ((0, 60, wire.ROLLOUTS), (50, 3000, wire.PROPOSALS), (-200, 60, wire.ROLLOUTS))
    announcements = [signed(name, ago_s, ttl_s, topic=topic) for name in subkeys for ago_s, ttl_s, topic in kinds]
    bodies = [b"", b"body", b"x" * 1000]
    now = time.time()
    keys = [key(where) for _, where, _ in announcements] + [body_key(body) for body in bodies]
    keys += [
        key(directory.directory_key(swarm, wire.ROLLOUTS, bits)) for swarm in (SWARM, "b") for bits in ("", "0", "11")
    ] + [key("7")]
    values = [value for value, _, _ in announcements] + [bin_(body) for body in bodies]
    values += [bin_(genrl_record([group()])), b"", b"\xc1", nested(300), tag("text"), tag([1]), tag({"a": 1})]
    times = [expires_at_s for _, _, expires_at_s in announcements]
    times += [now + 60, now + 4000, now - 1, math.nan, math.inf, -math.inf, 0.0, 1e300]
    tags = [tag(subkey) for subkey in subkeys.values()]
    tags += [PLAIN, b"", tag("@"), tag(7), tag(""), tag(b"x"), nested(300), b"\xc1", tag("x" * 200)]
    entries = [[subkey, value, end] for subkey, (value, _, end) in zip(subkeys.values(), announcements, strict=False)]
    values += [sent(entries, maxsize=0), sent([[{}, b"", 1.0], *entries]), pack_dictionary([("a", b"b", now + 9)])]
    while True:
        honest = dice.randrange(len(announcements) + len(bodies))  # at one place of keys, values and times
        record = [keys[honest], tags[honest // 3] if honest < 9 else PLAIN, values[honest], times[min(honest, 9)]]
        for column, others in enumerate((keys, tags, values, times)):
            if dice.random() < 0.3:
                record[column] = dice.choice(others)
        for column in range(3):
            if dice.random() < 0.2:
                record[column] = mutated(record[column], dice)
        yield tuple(record)


def fuzz(rules, subkey_of, monkeypatch) -> dict[DHTID, dict[str | None, records.StoredRecord]]:
    monkeypatch.setattr(server, "RATE_PER_S", 1e9)
    monkeypatch.setattr(server, "BURST", 1e9)

    async def scenario():
        dice = random.Random(1)
        asker = await Asker.create(rules)
        hostile = hostile_records(dice, {name: subkey_of(name) for name in NAMES})
        for _ in range(NUM_REQUESTS):
            some = [next(hostile) for _ in range(dice.choice([1, 1, 2, 5]))]
            await is_refused(asker.store(*some), "DHTID must be")  # a key too long
        assert len(await asker.find("7")) == 1
        return asker.server._records._records

    return run(scenario)


def as_items(stored, sender: str):
    for where, entries in stored.items():
        for subkey, record in entries.items():
            yield OfferedRecord(
                key=where, subkey=subkey, value=record.value, expires_at_s=record.expires_at_s, sender=sender
            )


def test_a_native_server_survives_and_has_nothing_that_its_rules_refuse(monkeypatch):
    stored = fuzz(directory.RULES, slot, monkeypatch)
    items = list(as_items(stored, "somebody"))
    now = time.time()
    assert len({item.subkey for item in items}) == 4  # the honest ones of these are stored
    for item in items:
        assert directory.RULES.accept(item) is not None
        assert now - 600 < item.expires_at_s <= now + server.MAX_TTL_S
        assert item.subkey in (None, *map(slot, NAMES))
        if item.subkey is None:
            assert item.key.to_bytes() in [body_key(body) for body in (b"", b"body", b"x" * 1000)]


def test_a_genrl_server_survives_and_has_only_peers_entries(monkeypatch):
    stored = fuzz(genrl.RULES, lambda name: identity(name).peer_id, monkeypatch)
    items = list(as_items(stored, "somebody"))
    assert len(items) >= 10
    assert all(genrl.RULES.accept(item) is not None for item in items)
    assert all(len(entries) <= records.MAX_ENTRIES for entries in stored.values())
