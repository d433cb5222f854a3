"""How many nodes there are, from whom they name: in a ring of known size, and among liars."""

from __future__ import annotations

import random

from hivemind.dht.routing import DHTID

from codezero.network.dht import density
from codezero.network.dht.density import Density


def ids(count: int, seed: int = 1) -> list[DHTID]:
    dice = random.Random(seed)
    return [DHTID(dice.getrandbits(160)) for _ in range(count)]


def answers(nodes: list[DHTID], where: DHTID, count: int = 4) -> list[list[DHTID]]:
    """What the nodes nearest to a place name: themselves and the twenty nearest."""
    nearest = sorted(nodes, key=where.xor_distance)[:20]
    return [[node, *nearest] for node in nearest[:count]]


def test_thousand_nodes_are_estimated_to_a_fifth():
    nodes = ids(1000)
    for seed in range(20):
        seen = Density()
        for where in ids(20, seed=100 + seed):
            seen.note(where, answers(nodes, where))
        assert 800 < seen.size(nodes[seed], nodes) < 1250


def test_before_any_search_the_own_neighbourhood_tells():
    estimates = sorted(Density().size(node, ids(1000)) for node in ids(200, seed=2))
    assert 800 < estimates[100] < 1250


def test_nodes_that_only_one_liar_names_do_not_count():
    nodes, seen = ids(1000), Density()
    for number, where in enumerate(ids(20, seed=3)):
        lies = [DHTID(where ^ (number * 100 + i + 1)) for i in range(20)]
        seen.note(where, [lies, *answers(nodes, where)])
    assert 800 < seen.size(nodes[0], nodes) < 1250


def test_a_few_places_that_are_wrong_altogether_do_not_matter():
    nodes, seen = ids(1000), Density()
    for number, where in enumerate(ids(20, seed=4)):
        lies = [[DHTID(where ^ (i + 1)) for i in range(20)]] * 4
        seen.note(where, lies if number % 5 == 0 else answers(nodes, where))
    assert 700 < seen.size(nodes[0], nodes) < 1600


def test_a_place_with_too_few_nodes_says_nothing():
    nodes, seen = ids(1000), Density()
    before = seen.size(nodes[0], nodes)
    seen.note(DHTID(7), [[DHTID(1), DHTID(2)], [DHTID(1), DHTID(2)]])
    assert seen.size(nodes[0], nodes) == before


def test_the_places_searched_last_are_remembered():
    seen = Density()
    for nodes in (ids(100), ids(10_000)):
        for where in ids(density.MAX_PLACES, seed=len(nodes)):
            seen.note(where, answers(nodes, where))
    assert 7000 < seen.size(nodes[0], nodes) < 14_000
