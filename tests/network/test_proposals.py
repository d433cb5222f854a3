"""A proposer and its solvers as live nodes."""

from __future__ import annotations

import secrets

import pytest

from codezero.config import Network
from codezero.network.genrl import GenrlProposalBoard
from codezero.network.native import NativeProposalBoard
from codezero.network.proposals import SwarmProposals
from codezero.network.solvers import SwarmSolvers
from tests.network.nodes import Node
from tests.processes import wait_until
from tests.unit.network.proposal_nodes import attempts, proposal

BOTH = pytest.mark.parametrize("network", [Network.native, Network.genrl], ids=lambda network: network.value)


def board(node: Node):
    if node.config.network is Network.genrl:
        return GenrlProposalBoard(node.identity)
    return NativeProposalBoard(node.config.name, node.identity, secrets.token_hex(8))


def solver(node: Node) -> SwarmProposals:
    return SwarmProposals(node.link, board(node), node.config)


def proposer(node: Node) -> SwarmSolvers:
    return SwarmSolvers(node.link, board(node), node.config, node.peer_id)


def collected(side, count: int) -> list:
    """So many items as they come in sight."""
    found: list = []

    def enough() -> bool:
        found.extend(side.collect())
        return len(found) >= count

    wait_until(enough)
    return found


@BOTH
def test_two_solvers_solve_a_proposer_s_problems_and_tell_it(swarm, network):
    alice = swarm.node("alice", network=network)
    others = [swarm.node(name, alice, network=network) for name in ("bob", "carol")]
    for node in (alice, *others):
        node.wait_for(*[other for other in (alice, *others) if other is not node])
    asks, (bob, carol) = proposer(alice), map(solver, others)
    assert bob.collect() == ()
    asks.publish([proposal("f"), proposal("g")])
    for side, p_correct in ((bob, (1.0, 0.0)), (carol, (0.0, None))):
        got = collected(side, 2)
        assert {(one.peer_id, one.proposal_id) for one in got} == {
            (alice.peer_id, proposal(name).proposal_id) for name in ("f", "g")
        }
        assert side.collect() == ()
        side.give([attempts(one, p_correct) for one in got])
    heard = collected(asks, 4)
    assert {(one.peer_id, one.proposal_id, one.p_correct) for one in heard} == {
        (node.peer_id, proposal(name).proposal_id, p_correct)
        for node, p_correct in zip(others, ((1.0, 0.0), (0.0, 0.0)), strict=True)
        for name in ("f", "g")
    }
    assert {one.address for one in heard} == {"127.0.0.1"}
    assert asks.collect() == ()
    assert asks.status() == "2 solvers in sight"
    assert [side.take_rejected() for side in (asks, bob, carol)] == [{}, {}, {}]
