"""Live nodes that come, go, are cut off and find each other again."""

from __future__ import annotations

from types import SimpleNamespace

from codezero.config import Reach
from codezero.network import gossip
from tests.network.nodes import LOGPROBS, exchange_all, sources
from tests.processes import wait_until


def test_three_nodes_share_their_groups_with_log_probs_round_after_round(swarm):
    alice = swarm.node("alice")
    nodes = [alice, swarm.node("bob", alice), swarm.node("carol", alice)]
    for node in nodes:
        node.wait_for(*[other for other in nodes if other is not node])
    for number in (1, 2, 3):
        rounds = exchange_all(nodes, number)
        for node in nodes:
            found = rounds[node.name]
            assert sources(found) <= {other.peer_id for other in nodes} - {node.peer_id}
            assert {one.address for one in found.external} <= {"127.0.0.1", "unknown"}
            assert found.rejected == ()
            assert {attempt.logprobs for one in found.external for attempt in one.rollouts} <= {LOGPROBS}
    assert all(len(found.external) == 2 for found in rounds.values())


def test_a_late_joiner_gets_what_was_published_before_it_came(swarm):
    alice = swarm.node("alice")
    bob = swarm.node("bob", alice)
    bob.wait_for(alice)
    exchange_all([alice, bob], 1)
    late = swarm.node("carol", alice)
    late.wait_for(alice, bob)
    assert sources(late.exchange(9)) == {alice.peer_id, bob.peer_id}


def test_two_swarms_with_one_bootnode_do_not_mix(swarm):
    boot = swarm.node("boot")
    here = [swarm.node(name, boot, swarm="swarm-a") for name in ("alice", "bob")]
    there = [swarm.node(name, boot, swarm="swarm-b") for name in ("carol", "dave")]
    for node in (*here, *there):
        node.wait_for(boot)
    for one, other in ((*here,), (*there,)):
        one.wait_for(other)
    for number, elapsed_s in ((1, 3.0), (2, 60.0)):  # in the first they wait for those of the other swarm too
        rounds = exchange_all([*here, *there], number, elapsed_s=elapsed_s)
    for one, other in ((*here,), (*there,)):
        assert sources(rounds[one.name]) == {other.peer_id}
        assert sources(rounds[other.name]) == {one.peer_id}
    assert all(found.rejected == () for found in rounds.values())


def test_a_node_without_a_bootnode_plays_alone_and_joins_when_it_comes(swarm):
    boot = swarm.node("boot")
    address, port = boot.address, boot.port
    boot.link.close()
    alone = swarm.node("alice", address)
    found = alone.exchange(1, elapsed_s=0.5)
    assert (len(found.local), found.external) == (1, ())
    assert found.network == "alone: none of 1 bootnodes answers, dialling on"
    boot = swarm.node("boot", port=port)
    assert boot.address == address
    alone.wait_for(boot)
    boot.exchange(2, 0.1)
    found = alone.exchange(2)
    assert sources(found) == {boot.peer_id}
    assert found.network == "1 peer in sight"


def test_of_several_bootnodes_one_that_answers_is_enough(swarm):
    boot = swarm.node("boot")
    dead = swarm.node("dead")
    dead.link.close()
    alice = swarm.node("alice", dead.address, "/ip4/127.0.0.1/tcp/1/p2p/QmNobody", boot)
    alice.wait_for(boot)
    assert not alice.exchange(1, elapsed_s=0.1).network.startswith("alone")


def test_nobody_waits_for_a_silent_peer_a_second_time(swarm, monkeypatch):
    silent = swarm.node("silent")
    alice = swarm.node("alice", silent.address)
    bob = swarm.node("bob", silent.address)
    for node, other in ((alice, bob), (bob, alice)):
        node.wait_for(silent, other)
    looks = []
    real_look = alice.board.look

    async def counted(dht, round_id):
        looks.append(round_id.number)
        return await real_look(dht, round_id)

    alice.board.look = counted
    monkeypatch.setattr(gossip, "time", SimpleNamespace(monotonic=lambda: len(looks)))  # a look takes a second
    alice.exchange(1, elapsed_s=3.0)  # bob has published nothing, so there is somebody to wait for
    alice.exchange(2, elapsed_s=3.0)
    assert looks == [1, 1, 1, 2]


def test_a_node_whose_bootnode_is_gone_for_good_finds_the_swarm_through_its_cache(swarm, tmp_path):
    cache = tmp_path / "peers of alice.json"
    boot = swarm.node("boot")
    bob = swarm.node("bob", boot)
    alice = swarm.node("alice", boot, cache=cache)
    alice.wait_for(boot, bob)
    wait_until(lambda: cache.exists() and bob.peer_id in cache.read_text())
    boot.link.close()
    alice.link.close()
    alice = swarm.node("alice", boot, cache=cache)
    alice.wait_for(bob)
    bob.exchange(1, 0.1)
    assert sources(alice.exchange(1)) == {bob.peer_id}


def test_a_client_publishes_and_collects_though_it_stores_nothing(swarm):
    boot = swarm.node("boot")
    client = swarm.node("client", boot, reach=Reach.client)
    client.wait_for(boot)
    boot.exchange(1, 0.1)
    assert sources(client.exchange(1)) == {boot.peer_id}
    assert sources(boot.exchange(2)) == {client.peer_id}
    assert client.peer_id not in boot.dht.neighbours()


def test_two_nodes_that_lost_their_bootnode_go_on_with_each_other(swarm):
    boot = swarm.node("boot")
    alice, bob = swarm.node("alice", boot), swarm.node("bob", boot)
    alice.wait_for(bob)
    bob.wait_for(alice)
    boot.link.close()
    for number in (1, 2):
        rounds = exchange_all([alice, bob], number, elapsed_s=60.0)
    assert sources(rounds["alice"]) == {bob.peer_id}
    assert sources(rounds["bob"]) == {alice.peer_id}
