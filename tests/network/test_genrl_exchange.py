"""Nodes in GenRL's format: among themselves, with the real GenRL 0.3.0, and with poison between them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from codezero.config import Network
from tests.network.hostile import sends, store_request
from tests.network.nodes import Node, exchange_all, sources
from tests.processes import wait_until


def trio(swarm) -> tuple[Node, Node, Node]:
    mallory = swarm.node("mallory", network=Network.genrl)
    alice, bob = (swarm.node(name, mallory, network=Network.genrl) for name in ("alice", "bob"))
    for node in (mallory, alice, bob):
        node.wait_for(*[other for other in (mallory, alice, bob) if other is not node])
    return mallory, alice, bob


def play(alice: Node, bob: Node, number: int) -> set[str]:
    """A round in which both must get each other's groups; why they dropped others'."""
    for one, other in ((alice, bob), (bob, alice)):
        one.gossip._awaited = {other.peer_id: ""}  # and not mallory, who publishes nothing that can be used
    rounds = exchange_all([alice, bob], number, elapsed_s=60.0)
    assert bob.peer_id in sources(rounds["alice"])
    assert alice.peer_id in sources(rounds["bob"])
    return {reason for found in rounds.values() for _, reason in found.rejected}


def test_nodes_share_their_groups_round_after_round(swarm):
    _, alice, bob = trio(swarm)
    for number in (1, 2, 3):
        assert play(alice, bob, number) == set()


def test_a_poisoned_value_under_a_subkey_keeps_nobody_waiting(swarm):
    """A value that is not msgpack at all, stored as GenRL's servers let anybody; hivemind's own get waits for ever."""
    mallory, alice, bob = trio(swarm)
    for target in (alice, bob):
        for name in (mallory.peer_id, alice.peer_id):
            sends(mallory, target, "store", store_request("1", name, b"\xc1 no msgpack"))
    assert play(alice, bob, 1) == set()


@pytest.mark.slow
def test_rollouts_cross_between_our_gossip_and_genrls_backend(swarm, start_genrl_peer):
    """Two rounds in both directions, through a DHT in which both keep the records."""
    alice = swarm.node("alice", network=Network.genrl)
    genrl = start_genrl_peer([alice.address], 2)
    wait_until(lambda: genrl.peer_id in alice.link.others())
    for number in (7, 8):
        theirs = {"question": f"theirs in {number}", "test": "assert True", "dataset": "mbpp", "actions": ["c", "d"]}
        with ThreadPoolExecutor(1) as pool:
            gathering = pool.submit(genrl.gather, number, [theirs])
            found = alice.exchange(number, elapsed_s=60.0)
            received = gathering.result()
        assert [payload["question"] for payload in received[alice.peer_id]] == [f"task of alice in round {number}"]
        assert [payload["actions"] for payload in received[alice.peer_id]] == [["a", "b"]]
        metadata = ["codezero", "finish", "model_id", "policy_version"]
        assert [payload["metadata"] for payload in received[alice.peer_id]] == [metadata]
        (one,) = found.external
        assert (one.peer_id, one.task.question, one.address) == (genrl.peer_id, f"theirs in {number}", "127.0.0.1")
        assert [rollout.text for rollout in one.rollouts] == ["c", "d"]
        assert found.rejected == ()
