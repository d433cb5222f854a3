from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from codezero.config import SwarmConfig
from codezero.network import directory
from codezero.network.dht.link import Backoff, SwarmLink


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_each_failure_doubles_the_wait_up_to_a_minute(clock):
    backoff = Backoff(clock)
    waits = [backoff.failed("x") for _ in range(12)]
    for wait_s, doubled_s in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60], strict=True):
        assert 0.7 * doubled_s <= wait_s <= 1.3 * doubled_s


def test_nodes_do_not_try_again_at_the_same_moment(clock):
    assert len({Backoff(clock).failed("x") for _ in range(20)}) == 20


def test_what_has_failed_is_due_when_its_wait_is_over(clock):
    backoff = Backoff(clock)
    assert backoff.is_due("x")
    wait_s = backoff.failed("x")
    assert not backoff.is_due("x")
    assert backoff.is_due("y")
    clock.now = wait_s
    assert backoff.is_due("x")


def test_success_forgets_the_failures(clock):
    backoff = Backoff(clock)
    for _ in range(10):
        backoff.failed("x")
    backoff.succeeded("x")
    assert backoff.is_due("x")
    assert backoff.failed("x") <= 1.3
    backoff.succeeded("never heard of")


def test_a_thousand_failures_do_not_overflow(clock):
    backoff = Backoff(clock)
    assert max(backoff.failed("x") for _ in range(2000)) <= 78


A, B, C = (f"/ip4/10.0.0.{n}/tcp/1/p2p/Qm{n}" for n in (1, 2, 3))


def link(tmp_path, bootnodes=(), known=(), connected=(), num_neighbours=1) -> SwarmLink:
    """One that has not started."""
    one = SwarmLink(SwarmConfig(bootnodes=list(bootnodes)), tmp_path / "key", tmp_path / "peers.json", directory.RULES)
    one._cache.note(known)
    one.peer_id = "QmMe"
    one._connected = dict.fromkeys(connected, "/ip4/10.0.0.9/tcp/1")
    one._dht = SimpleNamespace(num_neighbours=lambda: num_neighbours, neighbours=lambda: ["Qm1", "Qm2"])
    one.close()
    return one


def test_bootnodes_are_dialled_until_they_are_connected(tmp_path):
    assert link(tmp_path, [A, B])._to_dial() == [A, B]
    assert link(tmp_path, [A, B], connected=["Qm1"])._to_dial() == [B]
    assert link(tmp_path, [A, B], connected=["Qm1", "Qm2"])._to_dial() == []


def test_who_knows_nobody_meets_a_connected_bootnode_again(tmp_path):
    assert link(tmp_path, [A], connected=["Qm1"], num_neighbours=0)._to_dial() == [A]


def test_old_acquaintances_are_dialled_while_no_bootnode_is_there(tmp_path):
    assert link(tmp_path, [A], known=[B, C])._to_dial() == [A, B, C]
    assert link(tmp_path, [A], known=[B, C], connected=["Qm1"])._to_dial() == []
    assert link(tmp_path, [], known=[B, C], connected=["Qm2"])._to_dial() == [C]


def test_a_few_acquaintances_are_dialled_at_a_time(tmp_path):
    assert len(link(tmp_path, known=[f"/ip4/10.0.0.1/tcp/{n}/p2p/Qm{n}" for n in range(60)])._to_dial()) == 8


def test_nobody_dials_itself_or_before_it_is_due(tmp_path):
    assert link(tmp_path, ["/ip4/10.0.0.7/tcp/1/p2p/QmMe"])._to_dial() == []
    one = link(tmp_path, [A, B])
    one._backoff = Backoff(Clock())
    one._backoff.failed(A)
    assert one._to_dial() == [B]


def test_status_says_alone_until_somebody_answers(tmp_path):
    one = link(tmp_path, [A, B])
    assert one.status() == "alone: the p2p daemon is being started again"
    one._ready.set()
    one._dht.neighbours = list
    assert one.status() == "alone: none of 2 bootnodes answers, dialling on"
    one._connected = {"Qm1": "/ip4/10.0.0.1/tcp/1"}
    assert one.status() == "nobody else here yet"
    one._connected = {"Qm1": "/ip4/10.0.0.1/tcp/1", "Qm3": "/ip4/10.0.0.3/tcp/1"}
    assert one.status() == "nobody publishes yet, 1 node in reach"
    assert one.others() == {"Qm3"}


def test_a_link_that_never_started_closes(tmp_path):
    one = SwarmLink(SwarmConfig(), tmp_path / "key", tmp_path / "peers.json", directory.RULES)
    one.close()
    one.close()
    assert one._loop.is_closed()


def test_there_is_no_dht_while_its_daemon_is_dead(tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.network.dht.link.READY_TIMEOUT_S", 0.05)
    alive = SimpleNamespace(_read_task=SimpleNamespace(done=bool), _write_task=SimpleNamespace(done=bool))
    one = link(tmp_path)
    one._ready.set()
    one._dht.p2p = SimpleNamespace(_child=SimpleNamespace(returncode=None), _client=SimpleNamespace(control=alive))
    assert asyncio.run(one.dht()) is one._dht
    one._dht.p2p._child.returncode = -9
    assert asyncio.run(one.dht()) is None
