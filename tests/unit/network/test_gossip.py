"""What an exchange hands out, drops and waits for, over a network in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from codezero.config import SwarmConfig
from codezero.network import gossip as gossip_module
from codezero.network import memory, signed
from codezero.network.board import DUPLICATE_IDENTITY
from codezero.network.gossip import SwarmGossip
from codezero.network.native import NativeBoard
from codezero.network.wire import Reason, WireError
from tests.unit.network.dht.memory_p2p import MemoryLink, MemoryNetwork, exchange
from tests.unit.network.fake_board import Board, Link, gossip, of, play, questions
from tests.unit.network.wire_builders import SWARM, group, identity

ALICE, BOB, CAROL = (identity(name).peer_id for name in ("alice", "bob", "carol"))


def test_own_groups_are_published_and_others_handed_out_with_address_and_age():
    board = Board(p1=of("p1", "one"))
    board.addresses, board.ages = {"p1": "1.2.3.4"}, {"p1": 1}
    own = of(ALICE, "mine")
    found = play(board, own)
    assert board.published == [own]
    assert found.local == tuple(own)
    assert [(one.peer_id, one.address, one.age) for one in found.external] == [("p1", "1.2.3.4", 1)]
    assert (found.rejected, found.network) == ((), "1 peer in sight")


def test_whose_copy_comes_faster_does_not_decide_between_equal_groups():
    class Slow(Board):
        async def take(self, dht, notice):
            await asyncio.sleep(0.001 * (notice.peer_id == "author"))
            return await super().take(dht, notice)

    found = {
        play(Slow(author=of("author", "same"), copier=of("copier", "same"))).external[0].peer_id for _ in range(40)
    }
    assert found == {"author", "copier"}


async def test_a_peer_s_groups_are_handed_out_once():
    one = gossip(Board(p1=of("p1", "one")))
    assert [len((await exchange(one, number)).external) for number in (1, 2, 3)] == [1, 0, 0]


@pytest.mark.parametrize(
    ("publications", "reason"),
    [
        ({"p1": [group("p1", "one", texts=("a", "b", "c"))]}, "group_size"),
        ({"p1": [group("p1", "one", texts=("a",))]}, "group_size"),
        ({"p1": of("p1", "long " * 200)}, "too_long"),
        ({"p1": of("p1", "mine")}, "duplicate"),
        ({"p1": [group("p1", "mine", tests="other tests")]}, "duplicate"),
        ({"p1": of("p1", "same", "same")}, "duplicate"),
        ({"p1": of("p1", "same"), "p2": of("p2", "same")}, "duplicate"),
        ({"banned": of("banned", "one")}, "banned"),
        ({"p1": WireError(Reason.BAD_SIGNATURE, "forged")}, "bad_signature"),
        ({"p1": WireError(Reason.UNAVAILABLE, "gone")}, "unavailable"),
    ],
    ids=[
        "too many",
        "too few",
        "too long a task",
        "ours",
        "ours, other tests",
        "own twice",
        "copied",
        "banned",
        "unusable",
        "unavailable",
    ],
)
def test_what_is_dropped_is_counted_with_its_reason(publications, reason):
    found = play(Board(**publications, honest=of("honest", "good")), of(ALICE, "mine"), banned_peers=["banned"])
    assert [why for _, why in found.rejected] == [reason]
    assert {one.peer_id for one in found.external} >= {"honest"}
    assert len(questions(found)) == len(found.external)


async def test_groups_of_an_earlier_round_that_come_back_under_another_name_are_dropped():
    board = Board(p1=of("p1", "one"))
    one = gossip(board)
    await exchange(one, 1, of(ALICE, "mine"))
    board.publications = {"copier": of("copier", "mine", "one", "new")}
    found = await exchange(one, 2)
    assert found.rejected == (("copier", "duplicate"),) * 2
    assert questions(found) == {"new"}


async def test_a_stale_publication_is_counted_once_and_not_in_every_round():
    board = Board(p1=of("p1", "old"))
    board.ages = {"p1": None}
    one = gossip(board)
    assert [(await exchange(one, number)).rejected for number in (1, 2)] == [(("p1", "stale"),), ()]


async def test_what_is_unavailable_now_is_asked_for_again_in_the_next_round():
    board = Board(p1=WireError(Reason.UNAVAILABLE, "gone"))
    one = gossip(board)
    first = await exchange(one, 1)
    board.publications = {"p1": of("p1", "one")}
    assert first.rejected == (("p1", "unavailable"),)
    assert questions(await exchange(one, 2)) == {"one"}


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (WireError(Reason.MALFORMED, "forged"), "malformed"),
        ([replace(group("p1", "one", texts=("a",)), signed=False)], "group_size"),
    ],
    ids=["unreadable", "of-no-use"],
)
async def test_a_forgery_does_not_make_us_leave_before_the_peer_has_published(forged, reason):
    board = Board(p1=forged)
    real_look = board.look

    async def look(dht, round_id):
        if board.looks == 2:
            board.publications = {"p1": of("p1", "true")}
        return await real_look(dht, round_id)

    board.look = look
    found = await exchange(gossip(board, Link("p1")), 7, elapsed_s=20.0)
    assert questions(found) == {"true"}
    assert found.rejected == (("p1", reason),)


async def test_who_publishes_nothing_but_garbage_is_not_awaited():
    board = Board(p1=WireError(Reason.MALFORMED, "garbage"))
    one = gossip(board, Link("p1"))
    await exchange(one, 1, elapsed_s=0.5)
    looks = board.looks
    await exchange(one, 2, elapsed_s=0.5)
    assert board.looks - looks == 1


def test_many_identities_of_one_address_take_one_place_each_turn():
    sybils = {f"sybil{number}": of(f"sybil{number}", f"spam {number}") for number in range(100)}
    board = Board(**sybils, p1=of("p1", "one"), p2=of("p2", "two"), p3=of("p3", "three"))
    board.addresses = dict.fromkeys(sybils, "6.6.6.6")
    found = play(board, num_external=2)  # a pool of four
    assert questions(found) >= {"one", "two", "three"}


def test_of_each_publication_one_group_comes_before_any_second():
    board = Board(p1=of("p1", *[f"many {number}" for number in range(60)]), p2=of("p2", "one"))
    assert "one" in questions(play(board, num_external=1))


def test_who_publishes_first_has_not_the_first_places_of_the_pool():
    """A forged publication makes the exchange look again, by when honest peers have published too."""

    class Filling(Board):
        async def look(self, dht, round_id):
            if self.looks == 1:
                self.publications |= {"p1": of("p1", "one"), "p2": of("p2", "two")}
            return await super().look(dht, round_id)

    early = {f"early{number}": of(f"early{number}", f"spam {number}") for number in range(4)}
    board = Filling(**early, forged=WireError(Reason.BAD_SIGNATURE, "forged"))
    board.addresses = dict.fromkeys(early, "6.6.6.6")
    found = play(board, elapsed_s=60.0)
    assert len(found.external) == 6
    assert {one.address for one in found.external[:3]} == {"6.6.6.6", "p1", "p2"}


async def test_reading_long_tasks_keeps_the_network_s_thread_free_and_happens_one_at_a_time():
    reading, most, free, ticked = [0], [0], [], threading.Event()

    def fits(task) -> bool:
        reading[0] += 1
        most[0] = max(most[0], reading[0])
        time.sleep(0.02)
        ticked.clear()
        free.append(ticked.wait(60))
        reading[0] -= 1
        return True

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.001)
            ticked.set()

    board = Board(**{f"p{number}": of(f"p{number}", str(number)) for number in range(8)})
    one = SwarmGossip(Link(), board, SwarmConfig(num_external=4), num_generations=2, fits=fits)
    ticker = asyncio.create_task(tick())
    found = await exchange(one, 7)
    ticker.cancel()
    assert len(found.external) == 8
    assert most == [1]
    assert free == [True] * 8


async def test_a_group_on_an_unknown_task_is_dropped_before_anything_reads_the_task():
    def fits(task) -> bool:
        assert task.question == "known"
        return True

    def unwanted(task) -> str | None:
        return {"known": None, "of a list that is not complete": "unlisted_task"}.get(task.question, "unknown_task")

    board = Board(
        honest=of("honest", "known"),
        mallory=of("mallory", "invented", "known"),
        early=of("early", "of a list that is not complete"),
    )
    found = await exchange(SwarmGossip(Link(), board, SwarmConfig(num_external=4), 2, fits, unwanted), 7)
    assert questions(found) == {"known"}
    assert {("mallory", "unknown_task"), ("early", "unlisted_task")} <= {*found.rejected}


def test_publications_that_stall_cost_a_bounded_time(monkeypatch):
    monkeypatch.setattr(gossip_module, "ROUND_TAKE_S", 0.05)
    monkeypatch.setattr(gossip_module, "ROUND_GATHER_S", 0.2)
    board = Board(**{f"p{number}": 3600.0 + number for number in range(200)})
    started_s = time.monotonic()
    found = play(board, num_external=4)
    assert time.monotonic() - started_s < 60
    assert found.external == ()
    assert {why for _, why in found.rejected} == {"unavailable"}


def test_a_liar_cannot_make_the_report_grow_without_end():
    board = Board()
    board.rejected = {(f"Qm{number}", Reason.MALFORMED) for number in range(50_000)}
    assert len(play(board).rejected) == 1000


@pytest.mark.parametrize(("shown", "waits"), [(("p1",), False), (("p1", "p2"), True), ((), True)])
async def test_of_those_who_published_last_time_who_is_in_sight_is_awaited(shown, waits):
    """p1 has published again when we look, p2 not yet."""
    last = {"p1": of("p1", "one"), "p2": of("p2", "two")}
    board = Board(**last)
    one = gossip(board)
    await exchange(one, 1)
    board.publications = {name: content for name, content in last.items() if name in shown}
    if "p1" in shown:
        board.publications["p1"] = of("p1", "three")
    real_look, looks = board.look, []

    async def look(dht, round_id):
        if looks:
            board.publications = {"p1": of("p1", "four"), "p2": of("p2", "five")}
        looks.append(round_id)
        return await real_look(dht, round_id)

    board.look = look
    await exchange(one, 2, elapsed_s=60.0)
    assert len(looks) == 1 + waits


async def test_nobody_waits_for_a_silent_peer_twice(monkeypatch):
    board = Board()
    monkeypatch.setattr(gossip_module, "time", SimpleNamespace(monotonic=lambda: board.looks))  # a second a look
    one = gossip(board, Link("silent"))
    looks = []
    for number in (1, 2):
        before = board.looks
        await exchange(one, number, elapsed_s=3.0)
        looks.append(board.looks - before)
    assert looks == [3, 1]


def test_the_wait_is_bounded_by_patience_times_elapsed():
    for patience, elapsed_s, looks in ((0.0, 100.0, 1), (1.0, 0.0, 1), (0.001, 100.0, 1)):
        board = Board()
        play(board, link=Link("silent"), elapsed_s=elapsed_s, patience=patience)
        assert board.looks == looks


async def test_a_node_that_was_suspended_for_hours_does_not_wait_as_long(monkeypatch):
    board = Board()
    monkeypatch.setattr(gossip_module, "time", SimpleNamespace(monotonic=lambda: board.looks))  # a second a look
    monkeypatch.setattr(gossip_module, "MAX_TTL_S", 3.0)
    await exchange(gossip(board, Link("silent")), 1, elapsed_s=12.0)
    assert board.looks == 3


def test_enough_addresses_end_the_wait():
    board = Board(**{f"p{number}": of(f"p{number}", str(number)) for number in range(8)})
    play(board, link=Link("silent"), elapsed_s=60.0)
    assert board.looks == 1


def test_a_node_that_wants_no_groups_publishes_and_does_not_look():
    board = Board(p1=of("p1", "one"))
    found = play(board, of(ALICE, "mine"), num_external=0)
    assert (len(board.published), board.looks, found.external) == (1, 0, ())


def test_a_publication_that_is_too_large_goes_out_smaller_and_that_is_counted():
    board = Board()
    board.most = 2
    own = of(ALICE, "one", "two", "three", "four", "five")
    board.bad = own[0]
    found = play(board, own)
    assert board.published == [own[1:3]]
    assert found.rejected == ((ALICE, "too_large_to_share"),) * 3
    assert found.local == tuple(own)


def test_when_no_group_can_be_sent_nothing_is_published_and_the_exchange_goes_on(caplog):
    board = Board(p1=of("p1", "one"))
    board.most = 0
    found = play(board, of(ALICE, "mine"))
    assert (board.published, found.rejected) == ([], ((ALICE, "too_large_to_share"),))
    assert questions(found) == {"one"}
    assert "no other node" not in caplog.text


def test_what_no_node_keeps_is_tried_again_and_the_exchange_goes_on(caplog):
    board = Board(p1=of("p1", "one"))
    board.keeps = False
    found = play(board, of(ALICE, "mine"))
    assert len(board.published) == 2
    assert questions(found) == {"one"}
    assert "no other node has kept our groups" in caplog.text


async def test_a_node_whose_clock_is_fast_is_told_to_look_at_its_clock(monkeypatch, caplog):
    alice, _ = await MemoryNetwork().swarm("alice", "bob")
    fast = SimpleNamespace(time=lambda: time.time() + 600.0)
    monkeypatch.setattr(signed, "time", fast)
    board = NativeBoard(SWARM, identity("alice"), "00112233aabbccdd", 2)
    await exchange(SwarmGossip(MemoryLink(alice), board, SwarmConfig(num_external=2), 2), 1, [group(ALICE, "mine")])
    assert "no other node has kept our groups" in caplog.text
    assert "check this machine's clock" in caplog.text


async def test_groups_are_published_anew_when_the_daemon_was_started_anew():
    board, link = Board(), Link("somebody")
    real_look = board.look

    async def dies_meanwhile(dht, round_id):
        if board.looks == 0:
            link.current = object()
        return await real_look(dht, round_id)

    board.look = dies_meanwhile
    await exchange(gossip(board, link), 7, of(ALICE, "mine"), elapsed_s=0.0)
    assert len(board.published) == 2


def test_an_exchange_ends_though_the_daemon_dies_at_every_look(monkeypatch):
    monkeypatch.setattr(gossip_module, "MAX_DYING_S", 0.5)

    class Dying(Link):
        async def dht(self):
            return object()

    assert play(Board(), of(ALICE, "mine"), link=Dying()).external == ()


def test_without_a_daemon_the_node_trains_alone():
    link = Link()
    link.current = None
    found = play(Board(p1=of("p1", "one")), of(ALICE, "mine"), link=link)
    assert (len(found.local), found.external) == (1, ())


def test_a_duplicate_identity_is_said_in_the_round_s_line():
    board = Board()
    board.duplicate_identity = True
    assert play(board).network == DUPLICATE_IDENTITY


async def test_memory_of_what_was_used_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "MAX_REMEMBERED", 10)
    one = gossip(Board())
    for number in range(30):
        one._board.publications = {"p1": of("p1", str(number))}
        await exchange(one, number, of(ALICE, f"mine {number}"))
    assert len(one._reader._done) == 10
    assert len(one._known_groups) == 10


async def test_three_nodes_exchange_over_the_native_board():
    dhts = await MemoryNetwork().swarm("alice", "bob", "carol")
    nodes = [
        SwarmGossip(MemoryLink(dht), NativeBoard(SWARM, identity(name), f"{i:016x}", 2), SwarmConfig(num_external=4), 2)
        for i, (dht, name) in enumerate(zip(dhts, ("alice", "bob", "carol"), strict=True))
    ]
    peers = (ALICE, BOB, CAROL)
    for number in (1, 2, 3):
        rounds = await asyncio.gather(
            *[exchange(one, number, of(p, f"{p} {number}"), 60.0) for one, p in zip(nodes, peers, strict=True)]
        )
        for own, found in zip(peers, rounds, strict=True):
            assert {one.peer_id for one in found.external} == set(peers) - {own}
            assert found.rejected == ()


def test_groups_stay_visible_for_four_whole_rounds_also_of_a_node_that_samples_fast_or_ahead(monkeypatch):
    now_s = 1000.0
    monkeypatch.setattr(gossip_module, "time", SimpleNamespace(monotonic=lambda: now_s))

    async def scenario():
        nonlocal now_s
        board = Board()
        one = gossip(board)
        for number, (passed_s, elapsed_s) in enumerate([(0, 2), (200, 2), (10, 100), (9000, 2)]):
            now_s += passed_s
            await exchange(one, number, of("own", f"q{number}"), elapsed_s)
        return board.lives_s

    assert asyncio.run(scenario()) == [120.0, 800.0, 400.0, 3600.0]
