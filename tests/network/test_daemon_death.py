"""The p2p daemon dies, hangs, or stops talking, and the round goes on."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time

import pytest
from hivemind.p2p import P2P

from codezero.network.dht import daemon
from codezero.network.dht.dht import Dht
from tests.network.nodes import Node, sources
from tests.processes import wait_until


def pair(swarm) -> tuple[Node, Node]:
    """Bob knows the swarm through alice."""
    alice = swarm.node("alice")
    bob = swarm.node("bob", alice)
    alice.wait_for(bob)
    bob.wait_for(alice)
    return alice, bob


def killed_during(node: Node, round_number: int):
    """An exchange in the middle of which the daemon is killed."""
    started = threading.Event()
    real_look = node.board.look

    async def look(dht, round_id):
        started.set()
        return await real_look(dht, round_id)

    def kill() -> None:
        started.wait(30)
        time.sleep(0.3)
        node.daemon.kill()

    node.board.look = look
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        return node.exchange(round_number, elapsed_s=4.0)
    finally:
        killer.join()


@pytest.mark.parametrize("victim", ["alice", "bob"], ids=["the bootnode's", "a node's"])
def test_a_daemon_killed_in_an_exchange_comes_back_and_the_groups_reach_the_others(swarm, victim):
    nodes = {node.name: node for node in pair(swarm)}
    dead, other = nodes.pop(victim), *nodes.values()
    silent = swarm.node("silent", nodes["alice"] if victim == "bob" else dead)
    dead.wait_for(silent)
    address, old_pid = dead.address, dead.daemon.pid
    found = killed_during(dead, 2)  # it waits for the others, which have published nothing
    assert (len(found.local), found.external) == (1, ())
    wait_until(lambda: dead.daemon.is_running())
    assert dead.daemon.pid != old_pid
    assert dead.address == address  # the same peer id and port
    other.wait_for(dead)
    found = other.exchange(2, elapsed_s=1.0)
    assert [one.task.question for one in found.external] == [f"task of {victim} in round 2"]
    dead.wait_for(other)  # a node that knows nobody awaits nobody
    other.exchange(3, 0.0)
    assert sources(dead.exchange(3, elapsed_s=10.0)) == {other.peer_id}


def test_a_daemon_that_died_between_rounds_is_there_for_the_next(swarm):
    alice, bob = pair(swarm)
    alice.exchange(1, 0.1)
    daemon_of_bob = bob.daemon  # looked up once, since it may be gone at once
    daemon_of_bob.kill()
    daemon_of_bob.wait()
    assert sources(bob.exchange(1, elapsed_s=0.1)) == {alice.peer_id}
    assert sources(alice.exchange(2, elapsed_s=10.0)) == {bob.peer_id}


def test_a_daemon_that_dies_again_and_again_does_not_end_the_node(swarm, caplog):
    caplog.set_level(logging.WARNING)
    alice, bob = pair(swarm)
    for number in (1, 2, 3):
        bob.daemon.kill()
        bob.exchange(number, elapsed_s=0.0)
    bob.wait_for(alice)
    assert caplog.text.count("starting it again") == 3
    assert sources(alice.exchange(4, elapsed_s=10.0)) == {bob.peer_id}


def test_a_daemon_that_gives_no_more_answers_is_replaced(swarm):
    """As happens when an answer meets a call that has just timed out: the task in hivemind that reads answers ends."""
    alice, bob = pair(swarm)
    old_pid = bob.daemon.pid
    bob.link._loop.call_soon_threadsafe(bob.dht.p2p._client.control._read_task.cancel)
    wait_until(lambda: bob.daemon.pid != old_pid)
    bob.wait_for(alice)
    alice.exchange(1, 0.0)
    assert sources(bob.exchange(1, elapsed_s=10.0)) == {alice.peer_id}


@pytest.mark.slow
def test_a_daemon_that_hangs_is_killed_and_replaced(swarm):
    alice, bob = pair(swarm)
    old = bob.daemon
    old.send_signal(signal.SIGSTOP)
    wait_until(lambda: not old.is_running())
    bob.wait_for(alice)
    alice.exchange(1, 0.0)
    assert sources(bob.exchange(1, elapsed_s=10.0)) == {alice.peer_id}


@pytest.mark.parametrize(
    ("owner", "step"),
    [(P2P, "_read_outputs"), (daemon, "addresses"), (Dht, "create")],
    ids=["not ready", "no addresses", "no dht"],
)
def test_a_node_closed_while_its_daemon_is_started_again_leaves_none(swarm, monkeypatch, owner, step):
    """At each step at which a daemon runs and belongs to nobody yet; the fixture looks for daemons that are left."""
    alice = swarm.node("alice")
    reached = threading.Event()
    held = []

    async def hang(*handles, **__):
        held.append(handles)  # hivemind ends a daemon when its handle is collected, at the latest
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(owner, step, hang)
    alice.daemon.kill()
    assert reached.wait(300)
    alice.link.close()
