"""Bodies that are nowhere, or are not what they should be, over a network in memory."""

from __future__ import annotations

import hashlib
import time

import msgspec
import pytest
import zstandard

from codezero.network import directory, wire
from codezero.network.dht.server import OWN
from tests.unit.network.dht.asker import item_of
from tests.unit.network.dht.memory_p2p import MemoryNetwork
from tests.unit.network.test_native_board import ALICE, KEY, MINUTES_S, ROUND, board, shows, signed
from tests.unit.network.wire_builders import body_of


async def test_a_body_that_nobody_has_is_unavailable():
    reader, replica = await MemoryNetwork().swarm("reader", "replica")
    shows(replica, [(ALICE, signed("alice"))])
    one = board("reader")
    (notice,) = (await one.look(reader, ROUND)).notices
    with pytest.raises(wire.WireError, match="unavailable"):
        await one.take(reader, notice)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "malformed"),
        (b"junk", "malformed"),
        (b"\x28\xb5\x2f\xfd" + b"\0" * 50, "oversized"),
        (b"\x91" * 1000, "malformed"),
        (msgspec.msgpack.encode([{"model_id": 7}]), "malformed"),
        (zstandard.compress(b"\x91" * 100_000), "malformed"),
        (body_of([{"model_id": b"\xff", "policy_version": -1}]), "malformed"),
        (zstandard.compress(b"\0" * (64 << 20)), "oversized"),
    ],
    ids=["nothing", "junk", "bad frame", "no frame", "no zstd", "nested", "wrong types", "zip bomb"],
)
async def test_a_signed_body_of_garbage_is_dropped(body, reason):
    alice, bob = await MemoryNetwork().swarm("alice", "bob")
    key = directory.body_key(hashlib.sha256(body).digest())
    assert any(await alice.store(key, None, body, time.time() + MINUTES_S))
    for node in (alice, bob):
        item = item_of(KEY, ALICE, signed("alice", body=body), ttl_s=MINUTES_S)
        assert node._server._records.add(item, (1.0, 1.0), OWN)
    one = board("bob")
    (notice,) = (await one.look(bob, ROUND)).notices
    with pytest.raises(wire.WireError, match=reason):
        await one.take(bob, notice)
