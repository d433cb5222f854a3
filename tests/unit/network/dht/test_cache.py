from __future__ import annotations

import json
import os
import time

import pytest

from codezero.network.dht import cache
from codezero.network.dht.cache import MAX_PEERS, PeerCache

A, B, C = (f"/ip4/10.0.0.{n}/tcp/1/p2p/Qm{n}" for n in (1, 2, 3))
NOW = time.time()
SWARM = "native codezero"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "peers.json"


def test_peers_are_found_again_after_a_restart_the_last_seen_first(path, monkeypatch):
    one = PeerCache(path, SWARM)
    monkeypatch.setattr(cache.time, "time", lambda: NOW)
    one.note([A])
    monkeypatch.setattr(cache.time, "time", lambda: NOW + 100)
    one.note([B])
    assert PeerCache(path, SWARM).addresses() == [B, A]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"[" * 30_000,
        b"{" + b" " * 70_000 + b"}",
        b"1" * 5000,
        b"\0" * 100,
    ],
    ids=["empty", "cut off", "list", "null", "text", "no UTF-8", "deep", "too large", "huge number", "zeros"],
)
def test_a_broken_file_costs_the_memory_and_not_the_node(path, content):
    path.write_bytes(content)
    one = PeerCache(path, SWARM)
    assert one.addresses() == []
    one.note([A])
    assert PeerCache(path, SWARM).addresses() == [A]


@pytest.mark.parametrize("seen_s", ["1e400", "-1e400", "NaN", "1" + "0" * 400, "null", '"yesterday"', "[]", "{}", "-5"])
def test_a_time_that_makes_no_sense_is_passed_over(path, seen_s):
    path.write_text(f'{{"{A}": {seen_s}, "{B}": {NOW}}}')
    assert PeerCache(path, SWARM).addresses() == [B]


@pytest.mark.parametrize("address", ["", "10.0.0.1", "/ip4/10.0.0.1/tcp/1", "Qm1/p2p/"])
def test_what_is_no_address_is_passed_over(path, address):
    path.write_text(json.dumps({address: NOW, B: NOW}))
    assert PeerCache(path, SWARM).addresses() == [B]


def test_peers_of_a_swarm_that_the_node_has_left_are_not_dialled(path):
    PeerCache(path, SWARM).note([A])
    other = PeerCache(path, "genrl codezero")
    assert other.addresses() == []
    other.note([B])
    assert PeerCache(path, "genrl codezero").addresses() == [B]
    assert PeerCache(path, SWARM).addresses() == []


def test_peers_of_a_file_that_names_no_swarm_are_used(path):
    path.write_text(json.dumps({A: NOW}))  # as 0.1.0 wrote it
    assert PeerCache(path, SWARM).addresses() == [A]


def test_peers_not_seen_for_a_month_are_forgotten(path):
    path.write_text(json.dumps({A: NOW - 31 * 86_400, B: NOW - 29 * 86_400}))
    assert PeerCache(path, SWARM).addresses() == [B]


def test_peers_seen_by_a_clock_that_was_ahead_do_not_keep_later_ones_out(path, monkeypatch):
    many = {f"/ip4/10.0.{number}.1/tcp/1/p2p/Qm{number}": NOW + 86_400 for number in range(MAX_PEERS)}
    path.write_text(json.dumps(many))
    one = PeerCache(path, SWARM)
    for later in (0, 10):
        monkeypatch.setattr(cache.time, "time", lambda later=later: NOW + later)
        one.note([A])
    assert one.addresses()[0] == A


def test_a_thousand_strangers_do_not_push_out_those_still_there(path):
    one = PeerCache(path, SWARM)
    for number in range(1000):
        one.note([A, f"/ip4/6.6.6.6/tcp/{number}/p2p/Qm{number}"])
    assert len(one.addresses()) == 9  # eight of one address
    assert A in PeerCache(path, SWARM).addresses()


def test_a_thousand_strangers_do_not_push_out_one_that_was_away(path, monkeypatch):
    one = PeerCache(path, SWARM)
    strangers = [f"/ip4/6.6.6.6/tcp/{number}/p2p/Qm{number}" for number in range(1000)]
    for later, seen in enumerate(([A, *strangers], strangers, [*strangers, A])):
        monkeypatch.setattr(cache.time, "time", lambda later=later: NOW + later)
        one.note(seen)
        assert A in PeerCache(path, SWARM).addresses()


def test_the_file_is_not_written_again_while_there_are_more_peers_than_it_holds(path):
    one = PeerCache(path, SWARM)
    many = [f"/ip4/10.0.{number}.1/tcp/1/p2p/Qm{number}" for number in range(100)]
    one.note(many)
    before = path.stat().st_mtime_ns
    one.note(many)
    assert path.stat().st_mtime_ns == before


def test_the_file_is_not_written_again_for_the_same_peers(path):
    one = PeerCache(path, SWARM)
    one.note([A])
    before = path.stat().st_mtime_ns
    for _ in range(10):
        one.note([A])
    one.note([])
    assert path.stat().st_mtime_ns == before


def test_the_file_is_written_again_after_a_minute(path, monkeypatch):
    one = PeerCache(path, SWARM)
    monkeypatch.setattr(cache.time, "time", lambda: NOW)
    one.note([A])
    monkeypatch.setattr(cache.time, "time", lambda: NOW + 1000)
    one.note([A])
    assert json.loads(path.read_text()) == {"swarm": SWARM, A: NOW + 1000}


def test_a_place_that_cannot_be_written_or_read_is_survived(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "missing" / "peers.json", tmp_path / "folder"):
        one = PeerCache(path, SWARM)
        one.note([A])
        assert one.addresses() == [A]


def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch):
    PeerCache(path, SWARM).note([A])

    def crash(*args):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", crash)
    PeerCache(path, SWARM).note([B])
    assert PeerCache(path, SWARM).addresses() == [A]
