"""Proposals to solvers and feedback back, in both formats, over a network in memory."""

from __future__ import annotations

import pytest

from codezero.config import Network
from codezero.network import directory, genrl
from tests.unit.network.dht.memory_p2p import MemoryNetwork
from tests.unit.network.proposal_nodes import Loop, Proposer, Solver, attempts, board, proposal
from tests.unit.network.wire_builders import identity

ALICE, BOB, CAROL = (identity(name).peer_id for name in ("alice", "bob", "carol"))
BOTH = pytest.mark.parametrize("network", [Network.native, Network.genrl], ids=lambda network: network.value)


async def nodes(network: Network, *names: str):
    rules = directory.RULES if network is Network.native else genrl.RULES
    return [Loop(dht) for dht in await MemoryNetwork().swarm(*names, rules=rules)]


def carried(network: Network, one):
    """A proposal of alice's as it arrives."""
    lost = {"raw": ""} if network is Network.native else {"difficulty": None}
    return proposal(one, ALICE, **lost)


@BOTH
async def test_a_proposal_goes_out_and_what_came_of_it_comes_back(network):
    a, b, c = await nodes(network, "alice", "bob", "carol")
    alice = Proposer(board("alice", network), a)
    bob, carol = Solver(board("bob", network), b), Solver(board("carol", network), c)
    assert await bob.collect() == ()
    assert alice.side.status() == "in memory"
    assert await alice.publish(proposal("f"), proposal("g"))
    got = await bob.collect()
    assert got == (carried(network, "g"), carried(network, "f"))
    assert set(await carol.collect()) == set(got)
    assert await bob.collect() == ()
    assert await alice.collect() == ()
    await bob.give(attempts(got[0], (1.0, 0.0)), attempts(got[1], (0.0, None)), attempts(None))
    first = await alice.collect()
    assert {one.proposal_id: (one.p_correct, one.rewards) for one in first} == {
        proposal("g").proposal_id: ((1.0, 0.0), (1.0, 0.0)),
        proposal("f").proposal_id: ((0.0, 0.0), (0.0, -1.0)),
    }
    assert {(one.peer_id, one.address) for one in first} == {(BOB, "10.0.0.2")}
    assert alice.side.status() == "1 solver in sight"
    await carol.give(attempts(got[0], (1.0, 1.0)))
    assert [one.peer_id for one in await alice.collect()] == [CAROL]
    assert await alice.collect() == ()
    for side in (alice.side, bob.side, carol.side):
        assert side.take_rejected() == {}


@BOTH
async def test_each_body_repeats_what_was_said_before_it_and_it_is_heard_once(network):
    a, b = await nodes(network, "alice", "bob")
    alice, bob = Proposer(board("alice", network), a), Solver(board("bob", network), b)
    await alice.publish(proposal("f"))
    await bob.give(attempts(carried(network, "f")))
    await alice.publish(proposal("g"))
    assert {one.question for one in await bob.collect()} == {"Write f(x).", "Write g(x)."}
    await bob.give(attempts(carried(network, "g")), attempts(carried(network, "f"), (0.0, 0.0)))
    found = {one.proposal_id: one.p_correct for one in await alice.collect()}
    assert found == {proposal(name).proposal_id: (1.0, 0.0) for name in ("f", "g")}
    await bob.give(attempts(carried(network, "g")))
    assert await alice.collect() == ()


@BOTH
async def test_a_restarted_proposer_hears_on_and_shows_again_what_it_is_given(network):
    a, b, c = await nodes(network, "alice", "bob", "carol")
    bob, carol = Solver(board("bob", network), b), Solver(board("carol", network), c)
    before = Proposer(board("alice", network), a)
    await before.publish(proposal("f"))
    await bob.give(attempts(carried(network, "f")))
    assert len(await before.collect()) == 1

    after = Proposer(board("alice", network), a)
    after.side.remember([proposal("f")])
    assert await after.publish(proposal("g"))
    assert after.side.status() == "in memory"  # and no twin
    await carol.give(attempts(carried(network, "f"), (0.0, 0.0)))
    assert {one.peer_id for one in await after.collect()} == {BOB, CAROL}  # what was heard before comes once more
    assert {one.question for one in await carol.collect()} == {"Write f(x).", "Write g(x)."}

    forgetful = Proposer(board("alice", network), a)
    assert await forgetful.collect() == ()
    assert forgetful.side.take_rejected() == {"unknown_proposal": 2}


async def test_two_swarms_and_two_proposers_do_not_mix():
    a, b, c = await nodes(Network.native, "alice", "bob", "carol")
    alice, bob = Proposer(board("alice"), a), Proposer(board("bob"), b, name="bob")
    here, there = Solver(board("carol"), c), Solver(board("carol", swarm="another"), c)
    await alice.publish(proposal("f"))
    await bob.publish(proposal("g"))
    assert await there.collect() == ()
    got = await here.collect()
    assert {(one.peer_id, one.question) for one in got} == {(ALICE, "Write f(x)."), (BOB, "Write g(x).")}
    await here.give(*map(attempts, got))
    for one, name in ((alice, "f"), (bob, "g")):
        assert [said.proposal_id for said in await one.collect()] == [proposal(name).proposal_id]
        assert one.side.take_rejected() == {}


async def test_two_live_proposers_with_one_key_are_told():
    a, _ = await nodes(Network.native, "alice", "bob")
    one, two = (Proposer(board("alice"), a) for _ in range(2))
    said = []
    for number, side in enumerate((one, two, one)):
        await side.publish(proposal(str(number)))
        said.append("another live node" in side.side.status())
    assert said == [False, True, True]
