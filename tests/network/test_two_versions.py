"""Live nodes of both versions in one swarm: everybody hears everybody, and is answered."""

from __future__ import annotations

from codezero.network import wire
from codezero.network.wire import PROPOSALS, ROLLOUTS, feedback_to
from tests import version_1
from tests.network.nodes import eventually, exchange_all, sources
from tests.network.test_proposals import collected, proposer, solver
from tests.unit.network.proposal_nodes import attempts, proposal
from tests.unit.network.test_two_versions import old_group
from tests.unit.network.wire_builders import extended
from tests.version_1 import OldPeer


def test_a_swarm_of_both_versions(swarm):
    alice = swarm.node("alice")
    bob, old = swarm.node("bob", alice), swarm.node("old", alice, rules=version_1.RULES)
    for node in (alice, bob, old):
        node.wait_for(*[other for other in (alice, bob, old) if other is not node])
    for node in (alice, bob):  # as nodes will that send more than version 1 has words for
        node.board.pack = lambda round_id, groups: extended(wire.pack_groups(groups))
    peer = OldPeer("swarm-a", old.identity)

    def publishes(topic: str, *items) -> None:
        assert old.link.run(peer.publish(old.dht, topic, list(items)))

    def reads(topic: str) -> dict[str, list]:
        return old.link.run(peer.read(old.dht, topic))

    publishes(ROLLOUTS, old_group("old's"))
    rounds = exchange_all([alice, bob], 1)
    assert {name: sources(found) for name, found in rounds.items()} == {
        "alice": {bob.peer_id, old.peer_id},
        "bob": {alice.peer_id, old.peer_id},
    }
    assert [found.rejected for found in rounds.values()] == [(), ()]
    heard = reads(ROLLOUTS)
    assert {name: [one.task.question for one in groups] for name, groups in heard.items()} == {
        node.peer_id: [f"task of {node.name} in round 1"] for node in (alice, bob)
    }

    asks, solves = proposer(alice), solver(bob)
    assert asks.publish([proposal("f")])
    publishes(PROPOSALS, version_1.Proposal("tiny", "Write g(x).", "assert g(1) == 2", 2))
    assert [one.question for one in reads(PROPOSALS)[alice.peer_id]] == ["Write f(x)."]
    got = {one.peer_id: one for one in collected(solves, 2)}
    solves.give([attempts(one, (1.0, 0.0)) for one in got.values()])
    publishes(feedback_to(alice.peer_id), version_1.Marks(proposal("f").proposal_id, [0.5, 0.5], [0.0, 0.0]))
    assert {(one.peer_id, one.p_correct) for one in collected(asks, 2)} == {
        (bob.peer_id, (1.0, 0.0)),
        (old.peer_id, (0.5, 0.5)),
    }
    eventually(lambda: bob.peer_id in reads(feedback_to(old.peer_id)))
    ((marks,),) = reads(feedback_to(old.peer_id)).values()
    assert (marks.proposal_id, marks.p_correct) == (got[old.peer_id].proposal_id, [1.0, 0.0])
    assert {reason for _, reason in peer.refused} == {"wrong_version"}
