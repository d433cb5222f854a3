"""How long those who announce something and are gone in the next round make others wait."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

from codezero.network import gossip as gossip_module
from codezero.network.wire import Reason, WireError
from tests.unit.network.dht.memory_p2p import exchange
from tests.unit.network.fake_board import Board, gossip, of

GONE = WireError(Reason.UNAVAILABLE, "no node near has the body")


def looks_of_rounds(monkeypatch, publications) -> list[int]:
    """How often a node looks in each round, with time for three looks, of which the last is too late for another, when
    these are published, one after another, by peers at one address, and an honest peer publishes at once. What was
    published before stays in sight, and is too old after two rounds."""

    async def scenario():
        board = Board()
        monkeypatch.setattr(gossip_module, "time", SimpleNamespace(monotonic=lambda: board.looks))  # a second a look
        one = gossip(board)
        looks, of_round = [], {}
        for number, published in enumerate(publications):
            board.publications |= {"honest": of("honest", f"good {number}"), **published}
            board.addresses |= dict.fromkeys(published, "6.6.6.6")
            of_round |= dict.fromkeys(("honest", *published), number)
            board.ages = {name: number - then if number - then < 2 else None for name, then in of_round.items()}
            before = board.looks
            found = await exchange(one, number, elapsed_s=3.0)
            assert "honest" in {group.peer_id for group in found.external}
            looks.append(board.looks - before)
        return looks

    monkeypatch.setattr(gossip_module, "FIRST_POLL_S", 0.01)
    monkeypatch.setattr(gossip_module, "LAST_POLL_S", 0.01)
    return asyncio.run(scenario())


def test_nobody_waits_for_who_announced_what_no_node_has(monkeypatch):
    rounds = [{f"sybil {number}": GONE} for number in range(6)]
    assert looks_of_rounds(monkeypatch, rounds) == [1] * 6


def test_an_address_whose_peers_are_gone_in_the_next_round_is_awaited_no_more_than_every_tenth_time(monkeypatch):
    rounds = [{f"sybil {number}": of(f"sybil {number}", f"one {number}")} for number in range(24)]
    looks = looks_of_rounds(monkeypatch, rounds)
    assert looks[:4] == [1, 3, 3, 1]
    assert looks.count(3) == 4


def test_a_peer_that_was_away_once_is_awaited_again(monkeypatch):
    here = [{"p1": of("p1", f"one {number}")} for number in range(3)]
    looks = looks_of_rounds(monkeypatch, [here[0], {}, here[1], {}, {}])
    assert looks == [1, 3, 1, 3, 1]


def test_a_peer_whose_groups_are_all_of_no_use_is_awaited_like_others(monkeypatch):
    long = [replace(one, task=replace(one.task, question="x" * 2000)) for one in of("p1", "too long")]
    looks = looks_of_rounds(monkeypatch, [{"p1": long}, {}, {}])
    assert looks == [1, 3, 1]
