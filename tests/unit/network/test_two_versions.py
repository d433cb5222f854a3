"""Nodes of both versions in one swarm, over a network in memory."""

from __future__ import annotations

import time

import pytest

from codezero.network import directory, wire
from codezero.network.wire import PROPOSALS, ROLLOUTS, VERSION, feedback_to
from codezero.types import RoundId
from tests import version_1
from tests.unit.network.dht.asker import bin_, is_stored, key, tag
from tests.unit.network.dht.memory_p2p import MemoryNetwork, publish
from tests.unit.network.proposal_nodes import Loop, Proposer, Solver, attempts, proposal
from tests.unit.network.proposal_nodes import board as proposal_board
from tests.unit.network.test_native_board import ALICE, BOB, MINUTES_S, ROUND, board, run, seen
from tests.unit.network.wire_builders import SWARM, announce, extended, group, identity
from tests.version_1 import OldPeer

OLD = identity("old").peer_id
TO_ALICE, TO_OLD = feedback_to(ALICE), feedback_to(OLD)


def old_group(question: str) -> version_1.Group:
    task = version_1.Task(version_1.Origin.MBPP, question, "assert f(1) == 2", None)
    return version_1.Group("tiny", 1, task, [version_1.Rollout(text, version_1.Finish.STOP) for text in "ab"])


def sound_board(name: str):
    """A board whose groups carry extensions."""
    one = board(name)
    one.pack = lambda round_id, groups: extended(wire.pack_groups(groups))
    return one


async def mixed_swarm() -> list:
    """Two nodes of version 2 and one of version 1, which all know each other."""
    network = MemoryNetwork()
    dhts = [
        await network.dht("alice"),
        await network.dht("bob"),
        await network.dht("old", rules=version_1.RULES),
    ]
    for dht in dhts:
        for other in dhts:
            assert dht is other or await dht.meet(other.p2p.peer_id)
    return dhts


async def slots(dht, topic: str = ROLLOUTS) -> set[str]:
    """The names of a directory's entries."""
    return {name for replica in await dht.read(directory.directory_key(SWARM, topic)) for name in replica}


async def questions(of, dht) -> dict[str, list[str]]:
    """The questions that a node of version 2 takes, by peer; nothing that it is shown is dropped."""
    sight = await of.look(dht, ROUND)
    assert sight.rejected == set()
    found = {notice.peer_id: await of.take(dht, notice) for notice in sight.notices}
    assert all(dropped == () for _, dropped in found.values())
    return {peer_id: [one.task.question for one in groups] for peer_id, (groups, _) in found.items()}


def test_rollouts_go_both_ways_between_the_versions():
    async def scenario():
        alice, bob, dht = await mixed_swarm()
        old = OldPeer(SWARM, identity("old"))
        assert await old.publish(dht, ROLLOUTS, [old_group("old's")])
        for name, one in (("alice", alice), ("bob", bob)):
            groups = [group(identity(name).peer_id, f"{name}'s")]
            assert await publish(sound_board(name), one, ROUND, groups, MINUTES_S)
        assert await questions(board("alice"), alice) == {BOB: ["bob's"], OLD: ["old's"]}
        assert await questions(board("bob"), bob) == {ALICE: ["alice's"], OLD: ["old's"]}
        heard = await old.read(dht, ROLLOUTS)
        assert {peer: [one.task.question for one in groups] for peer, groups in heard.items()} == {
            ALICE: ["alice's"],
            BOB: ["bob's"],
        }
        assert old.refused == {(f"{ALICE}/2", "wrong_version"), (f"{BOB}/2", "wrong_version")}

    run(scenario)


def test_nobody_pays_for_version_1_where_nobody_speaks_it():
    async def scenario():
        alice, bob = await MemoryNetwork().swarm("alice", "bob")
        for number in (1, 2):
            for name, one in (("alice", alice), ("bob", bob)):
                groups = [group(identity(name).peer_id, f"{name} {number}")]
                assert await publish(sound_board(name), one, RoundId(number=number), groups, MINUTES_S)
        asks, solves = Proposer(proposal_board("alice"), Loop(alice)), Solver(proposal_board("bob"), Loop(bob))
        assert await asks.publish(proposal("f"))
        await solves.give(*[attempts(one) for one in await solves.collect()])
        assert len(await asks.collect()) == 1
        assert await slots(bob) == {f"{ALICE}/2", f"{BOB}/2"}
        assert await slots(bob, PROPOSALS) == {f"{ALICE}/2"}
        assert await slots(bob, TO_ALICE) == {f"{BOB}/2"}
        bodies = [records for records in alice._server._records._records.values() if None in records]
        assert len(bodies) == 6  # two rounds of two nodes, the proposals, the feedback

    run(scenario)


def test_a_node_that_has_looked_reads_nothing_more_to_publish():
    async def scenario():
        alice, _ = await MemoryNetwork().swarm("alice", "bob")
        one, reads, read = board("alice"), [], alice.read

        async def noted(key):
            reads.append(key)
            return await read(key)

        await one.look(alice, ROUND)
        alice.read = noted
        assert await publish(one, alice, ROUND, [group(ALICE)], MINUTES_S)
        return reads

    assert run(scenario) == []


@pytest.mark.parametrize(("extensions", "count"), [(False, 1), (True, 2)])
def test_a_body_without_extensions_is_kept_once_for_both_versions(extensions, count):
    async def scenario():
        alice, _, dht = await mixed_swarm()
        assert await OldPeer(SWARM, identity("old")).publish(dht, ROLLOUTS, [])
        one, store, bodies = sound_board("alice") if extensions else board("alice"), alice.store, []

        async def noted(key, subkey, value, expires_at_s):
            bodies.append(value)
            return await store(key, subkey, value, expires_at_s)

        alice.store = noted
        assert await publish(one, alice, ROUND, [group(ALICE)], MINUTES_S)
        return len(bodies)

    assert run(scenario) == count


def test_a_peer_of_version_1_that_comes_later_is_spoken_to_from_the_next_round_on():
    async def scenario():
        alice, _, dht = await mixed_swarm()
        old, one, shown = OldPeer(SWARM, identity("old")), sound_board("alice"), []
        for number in (1, 2):
            assert await publish(one, alice, RoundId(number=number), [group(ALICE, str(number))], MINUTES_S)
            shown.append(
                [group.task.question for groups in (await old.read(dht, ROLLOUTS)).values() for group in groups]
            )
            assert await old.publish(dht, ROLLOUTS, [old_group("old's")])
            await one.look(alice, RoundId(number=number))
            one.finished(RoundId(number=number))
        return shown

    assert run(scenario) == [[], ["2"]]


def test_a_peer_that_was_updated_is_no_longer_spoken_to_in_version_1():
    async def scenario():
        alice, bob, dht = await mixed_swarm()
        assert await OldPeer(SWARM, identity("old")).publish(dht, ROLLOUTS, [old_group("before")])
        assert await publish(board("old"), bob, ROUND, [group(OLD, "after")], MINUTES_S)
        assert await publish(board("alice"), alice, ROUND, [group(ALICE)], MINUTES_S)
        assert await questions(board("alice"), alice) == {OLD: ["after"]}
        return await slots(alice)

    assert run(scenario) == {OLD, f"{OLD}/2", f"{ALICE}/2"}


def test_where_all_servers_are_of_version_1_it_is_spoken():
    async def scenario():
        network = MemoryNetwork()
        servers = [await network.dht(name, rules=version_1.RULES) for name in ("sybil 1", "sybil 2", "sybil 3")]
        alice, bob = [await network.dht(name, serve=False) for name in ("alice", "bob")]
        for client in (alice, bob):
            for server in servers:
                assert await client.meet(server.p2p.peer_id)
        assert await publish(sound_board("alice"), alice, ROUND, [group(ALICE, "heard")], MINUTES_S)
        return await questions(board("bob"), bob)

    assert run(scenario) == {ALICE: ["heard"]}


def test_proposals_and_feedback_go_from_a_new_proposer_to_an_old_solver_and_back():
    async def scenario():
        alice, _, dht = await mixed_swarm()
        old = OldPeer(SWARM, identity("old"))
        assert await old.publish(dht, ROLLOUTS, [])
        asks = Proposer(proposal_board("alice"), Loop(alice))
        assert await asks.publish(proposal("f", ALICE))
        ((one,),) = (await old.read(dht, PROPOSALS)).values()
        assert one.question == "Write f(x)."
        marks = version_1.Marks(proposal("f").proposal_id, [1.0, 0.0], [1.2, -0.2])
        assert await old.publish(dht, TO_ALICE, [marks])
        (heard,) = await asks.collect()
        assert (heard.peer_id, heard.p_correct) == (OLD, (1.0, 0.0))

    run(scenario)


def test_proposals_and_feedback_go_from_an_old_proposer_to_a_new_solver_and_back():
    async def scenario():
        alice, bob, dht = await mixed_swarm()
        old, asks = OldPeer(SWARM, identity("old")), Proposer(proposal_board("alice"), Loop(alice))
        assert await old.publish(dht, PROPOSALS, [version_1.Proposal("tiny", "Write g(x).", "assert g(1) == 2", 2)])
        assert await asks.publish(proposal("f", ALICE))
        solves = Solver(proposal_board("bob"), Loop(bob))
        got = {one.peer_id: one for one in await solves.collect()}
        assert {peer: one.question for peer, one in got.items()} == {OLD: "Write g(x).", ALICE: "Write f(x)."}
        await solves.give(*[attempts(one) for one in got.values()])
        ((marks,),) = (await old.read(dht, TO_OLD)).values()
        assert (marks.proposal_id, marks.p_correct) == (got[OLD].proposal_id, [1.0, 0.0])
        assert await slots(bob, TO_ALICE) == {f"{BOB}/2"}  # who speaks version 2 is answered in it alone

    run(scenario)


def both(name: str, body: bytes, ago_s: float = 0.0, versions=(1, 2)) -> list[tuple[str, bytes]]:
    """Entries of a peer, published at the same time."""
    now, peer_id = time.time() - ago_s, identity(name).peer_id
    one = announce(body, peer_id=peer_id, published_at_s=now, expires_at_s=now + MINUTES_S)
    return [
        (directory.slot(peer_id, version), wire.sign_announcement(one, identity(name), version)) for version in versions
    ]


def test_of_two_announcements_the_newer_one_counts_and_of_two_as_new_that_in_version_2():
    async def scenario(*entries):
        one = board("bob")
        (notice,) = (await seen(list(entries), by=one)).notices
        return notice.content.size, one._topic.old_peers

    now, later = both("alice", b"now"), both("alice", b"later", ago_s=-1.0)
    assert run(lambda: scenario(*now)) == (3, frozenset())
    assert run(lambda: scenario(*reversed(now))) == (3, frozenset())
    assert run(lambda: scenario(now[1], later[0])) == (5, {ALICE})
    assert run(lambda: scenario(now[0], later[1])) == (5, frozenset())


@pytest.mark.parametrize(
    ("place", "version", "kept"),
    [
        (ALICE, 1, True),
        (f"{ALICE}/2", 2, True),
        (f"{ALICE}/2", 1, False),
        (ALICE, 2, False),
        (f"{ALICE}/1", 1, False),
        (f"{ALICE}/3", 2, False),
        (f"{ALICE}/2/2", 2, False),
        (f"{ALICE}/02", 2, False),
        (f"{BOB}/2", 2, False),
        ("/2", 2, False),
    ],
    ids=lambda value: str(value).replace(ALICE, "alice").replace(BOB, "bob"),
)
def test_an_announcement_is_kept_in_the_slot_of_its_version_only(place, version, kept):
    ((_, content),) = both("alice", b"body", versions=[version])
    expires_at_s = wire.read_announcement(content).expires_at_s
    record = (key(directory.directory_key(SWARM, ROLLOUTS)), tag(place), bin_(content), expires_at_s)
    assert run(lambda: is_stored(record)) is kept
    assert run(lambda: is_stored(record, version_1.RULES)) is (kept and version == 1)


def test_a_replica_that_makes_up_slots_of_version_1_costs_nothing():
    """A forgery and another peer's announcement are dropped; nobody is spoken to in version 1 for them."""

    async def scenario():
        (_, of_bob), (_, forged) = both("bob", b"x")[0], both("alice", b"x")[1]
        one = board("carol")
        sight = await seen([(ALICE, b"\1" + forged[1:]), (f"{ALICE}/2", of_bob), ("x" * 100, of_bob)], by=one)
        return {reason.value for _, reason in sight.rejected}, sight.notices, one._topic.old_peers

    assert run(scenario) == ({"bad_signature", "wrong_peer"}, [], frozenset())


@pytest.mark.parametrize("version", [1, VERSION])
def test_a_duplicate_identity_is_seen_in_whichever_version_it_speaks(version):
    async def scenario():
        now = time.time() + 1
        one = announce(peer_id=ALICE, published_at_s=now, expires_at_s=now + MINUTES_S, instance="f" * 16)
        raw = wire.sign_announcement(one, identity("alice"), version)
        return (await seen([(directory.slot(ALICE, version), raw)], by=board("alice"))).duplicate_identity

    assert run(scenario)
