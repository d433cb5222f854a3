"""Native proposals and feedback among replicas that lie, over a network in memory."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from codezero.config import Network
from codezero.network import directory, genrl, wire
from codezero.network.dht.server import OWN
from tests.unit.network.dht.asker import item_of
from tests.unit.network.dht.memory_p2p import MemoryNetwork
from tests.unit.network.proposal_nodes import Loop, Proposer, Solver, attempts, board, proposal, results
from tests.unit.network.test_genrl_board import shows as shows_genrl
from tests.unit.network.test_native_board import MINUTES_S, shows, signed
from tests.unit.network.wire_builders import SWARM, identity

ALICE, BOB, CAROL = (identity(name).peer_id for name in ("alice", "bob", "carol"))
TO_ALICE, TO_BOB = wire.feedback_to(ALICE), wire.feedback_to(BOB)


async def replica_and(name: str):
    """Two nodes that know each other; the first shows what it is told to."""
    replica, other = await MemoryNetwork().swarm("replica", name)
    return replica, Loop(other)


def put(dht, topic: str, name: str, body: bytes, **changes) -> None:
    """Has a node keep a body and its announcement by this name's key."""
    where, own = directory.directory_key(SWARM, topic), identity(name).peer_id
    content = signed(name, body=body, topic=topic, size=len(body), **changes)
    assert dht._server._records.add(item_of(where, own, content, ttl_s=MINUTES_S), (1.0, 1.0), OWN)
    key = directory.body_key(hashlib.sha256(body).digest())
    dht._server._records.add(item_of(key, None, body, ttl_s=MINUTES_S), (1.0, 1.0), OWN)


SHOWN = {
    "rollouts replayed": (lambda: signed("alice"), "wrong_topic"),
    "feedback replayed": (lambda: signed("alice", topic=TO_BOB), "wrong_topic"),
    "another swarm's": (lambda: signed("alice", topic=wire.PROPOSALS, swarm="another"), "wrong_swarm"),
    "forged peer id": (lambda: signed("bob", topic=wire.PROPOSALS), "wrong_peer"),
    "forged signature": (lambda: signed("alice", topic=wire.PROPOSALS)[:-1] + b"\0", "bad_signature"),
    "expired": (lambda: signed("alice", ago_s=700.0, topic=wire.PROPOSALS), "stale"),
    "of the future": (lambda: signed("alice", ago_s=-100.0, topic=wire.PROPOSALS), "stale"),
    "giant": (lambda: b"\x02" + b"x" * 200_000, "oversized"),
    "deep nesting": (lambda: b"\x02" + b"\x91" * 2000, "malformed"),
    "no UTF-8": (lambda: b"\x02" + b"\xa4\xff\xfe\xfd\xfc", "malformed"),
    "nothing": (lambda: b"", "wrong_version"),
    "a body that nobody has": (lambda: signed("alice", topic=wire.PROPOSALS), "unavailable"),
}


@pytest.mark.parametrize("name", SHOWN)
async def test_what_a_replica_makes_up_for_proposals_is_dropped_with_its_reason(name):
    content, reason = SHOWN[name]
    replica, link = await replica_and("reader")
    shows(replica, [(ALICE, content())])
    solver = Solver(board("reader"), link)
    assert await solver.collect() == ()
    assert dict(solver.side.take_rejected()) == {reason: 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda: signed("bob"), "wrong_topic"),
        (lambda: signed("bob", topic=wire.PROPOSALS), "wrong_topic"),
        (lambda: signed("bob", topic=wire.feedback_to(CAROL)), "wrong_topic"),
        (lambda: signed("carol", topic=TO_ALICE), "wrong_peer"),
        (lambda: signed("bob", topic=TO_ALICE), "unavailable"),
    ],
    ids=["rollouts", "proposals", "another proposer's", "forged peer id", "a body that nobody has"],
)
async def test_what_a_replica_makes_up_for_feedback_is_dropped_with_its_reason(content, reason):
    replica, link = await replica_and("alice")
    shows(replica, [(BOB, content())])
    proposer = Proposer(board("alice"), link)
    proposer.side.remember([proposal("f")])
    assert await proposer.collect() == ()
    assert dict(proposer.side.take_rejected()) == {reason: 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "malformed"),
        (b"junk", "malformed"),
        (b"\x28\xb5\x2f\xfd" + b"\0" * 50, "oversized"),
        (wire.pack_feedback([results()]), "malformed"),
    ],
    ids=["nothing", "junk", "no size", "feedback"],
)
async def test_signed_proposals_of_garbage_are_dropped_and_hide_no_others(body, reason):
    replica, link = await replica_and("reader")
    put(replica, wire.PROPOSALS, "alice", body)
    put(replica, wire.PROPOSALS, "bob", wire.pack_proposals([proposal("f")]))
    solver = Solver(board("reader"), link)
    found = await solver.collect()
    assert [(one.peer_id, one.question) for one in found] == [(BOB, "Write f(x).")]
    assert dict(solver.side.take_rejected()) == {reason: 1}


async def test_feedback_of_our_own_key_is_dropped_and_counted():
    replica, link = await replica_and("alice")
    put(replica, TO_ALICE, "alice", wire.pack_feedback([results(proposal("f").proposal_id)]))
    proposer = Proposer(board("alice"), link)
    proposer.side.remember([proposal("f")])
    assert await proposer.collect() == ()
    assert dict(proposer.side.take_rejected()) == {"own_key": 1}


async def test_an_older_record_does_not_stand_for_a_newer_one():
    a, b, liar = await MemoryNetwork().swarm("alice", "bob", "liar")
    alice, bob = Proposer(board("alice"), Loop(a)), Solver(board("bob"), Loop(b))
    assert await alice.publish(proposal("f"))
    old = wire.pack_proposals([proposal("old")])
    shows(liar, [(ALICE, signed("alice", ago_s=100.0, body=old, topic=wire.PROPOSALS, size=len(old)))])
    assert [one.question for one in await bob.collect()] == ["Write f(x)."]


async def test_a_proposer_that_no_peer_can_be_is_not_told_and_ends_nothing(caplog):
    (link,) = map(Loop, await MemoryNetwork().swarm("bob"))
    bob = Solver(board("bob"), link)
    await bob.give(attempts(proposal("f", peer_id="local")))
    await bob.give()
    assert caplog.text.count("'feedback/local' takes no feedback: malformed") == 1


GENRL = Network.genrl
A_PROPOSAL = wire.pack_genrl_proposals([proposal("f")])


async def genrl_reader(name: str, *replicas: str):
    reader, *others = await MemoryNetwork().swarm(name, *replicas, rules=genrl.RULES)
    return Loop(reader), others


def genrl_shows(dht, entries, ttl_s: float = 600.0, key: bytes = wire.PROPOSER_KEY) -> None:
    shows_genrl(dht, [(name, msgspec.msgpack.encode(value)) for name, value in entries], ttl_s, key)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "malformed"),
        (b"\xc1", "malformed"),
        (b"\x91" * 3000, "malformed"),
        (b"\x91\x81\xafproposal_tests\xa2\xff\xfe", "malformed"),
        (msgspec.msgpack.encode({"x": 1}), "malformed"),
        (msgspec.msgpack.encode(["x"]), "malformed"),
        (wire.pack_genrl_feedback([results("raw")]), "malformed"),
    ],
    ids=["nothing", "no msgpack", "nested", "no UTF-8", "a map", "texts", "feedback"],
)
async def test_of_genrl_proposals_what_cannot_be_read_is_dropped_and_hides_no_other(content, reason):
    link, (replica,) = await genrl_reader("reader", "replica")
    genrl_shows(replica, [(ALICE, content), (BOB, A_PROPOSAL), ("\x1b[2J", A_PROPOSAL)])
    solver = Solver(board("reader", GENRL), link)
    assert [one.peer_id for one in await solver.collect()] == [BOB]
    assert dict(solver.side.take_rejected()) == {reason: 2}  # the other is of no peer


async def test_genrl_entries_that_have_expired_are_not_seen():
    link, (replica,) = await genrl_reader("reader", "replica")
    genrl_shows(replica, [(ALICE, A_PROPOSAL)], ttl_s=-1.0)
    assert await Solver(board("reader", GENRL), link).collect() == ()


async def test_one_lying_replica_does_not_change_what_a_genrl_proposer_said():
    link, replicas = await genrl_reader("reader", "sybil 1", "sybil 2", "sybil liar")
    for replica in replicas[:2]:
        genrl_shows(replica, [(ALICE, A_PROPOSAL)])
    genrl_shows(replicas[2], [(ALICE, wire.pack_genrl_proposals([proposal("lie")]))], ttl_s=3600.0)
    assert [one.question for one in await Solver(board("reader", GENRL), link).collect()] == ["Write f(x)."]


async def test_genrl_feedback_under_our_own_name_or_on_others_proposals_is_dropped_and_counted():
    link, (replica,) = await genrl_reader("alice", "replica")
    said = wire.pack_genrl_feedback([results("raw f"), results("raw of another")])
    genrl_shows(replica, [(ALICE, said), (BOB, said)], key=wire.SOLVER_KEY)
    proposer = Proposer(board("alice", GENRL), link)
    proposer.side.remember([proposal("f"), proposal("g", raw="")])
    found = await proposer.collect()
    assert [(one.peer_id, one.proposal_id) for one in found] == [(BOB, proposal("f").proposal_id)]
    assert dict(proposer.side.take_rejected()) == {"own_key": 1, "unknown_proposal": 1}


async def test_what_a_genrl_node_could_not_bear_is_not_published():
    link, (reader,) = await genrl_reader("alice", "bob")
    alice, bob = Proposer(board("alice", GENRL), link), Solver(board("bob", GENRL), Loop(reader))
    assert await alice.publish(*[proposal(str(k), raw="r" * 10_000) for k in range(9)], proposal("x" * 50_000))
    assert [one.question for one in await bob.collect()] == [f"Write {k}(x)." for k in (8, 7, 6, 5)]
