"""How many nodes there are, from whom they name: in a ring of known size, and among liars."""

from __future__ import annotations

import random

from hivemind.dht.routing import DHTID

from codezero.network.dht import density
from codezero.network.dht.density import Density


def ids(count: int, seed: int = 1) -> list[DHTID]:
    dice = random.Random(seed)
    return [DHTID(dice.getrandbits(160)) for _ in range(count)]


def answers(nodes: list[DHTID], where: DHTID, count: int = 4, address: str = "") -> list[tuple[str, list[DHTID]]]:
    """What the nodes nearest to a place, each at an address of its own or all at this one, name: themselves and the
    twenty nearest."""
    nearest = sorted(nodes, key=where.xor_distance)[:20]
    return [(address or f"1.1.1.{number}", [node, *nearest]) for number, node in enumerate(nearest[:count])]


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


def test_nodes_that_only_liars_at_one_address_name_do_not_count():
    nodes, seen = ids(1000), Density()
    for number, where in enumerate(ids(20, seed=3)):
        lies = [DHTID(where ^ (number * 100 + i + 1)) for i in range(20)]
        seen.note(where, [("6.6.6.6", lies)] * 3 + answers(nodes, where))
    assert 800 < seen.size(nodes[0], nodes) < 1250


def test_nodes_on_one_machine_are_counted_as_others_are():
    nodes = ids(1000)
    before, seen = Density().size(nodes[0], nodes), Density()
    for where in ids(20, seed=100):
        seen.note(where, answers(nodes, where, address="127.0.0.1"))
    assert 800 < seen.size(nodes[0], nodes) < 1250
    assert seen.size(nodes[0], nodes) != before


def test_liars_everywhere_cannot_make_more_than_eight_of_one_node():
    nodes, seen = ids(1000), Density()
    alone = seen.size(nodes[0], nodes)
    for where in ids(20, seed=5):
        seen.note(where, [(f"6.6.6.{number}", [DHTID(where ^ (i + 1)) for i in range(20)]) for number in range(4)])
    assert 7 * alone < seen.size(nodes[0], nodes) <= 8 * (alone + 1)


def test_a_few_places_that_are_wrong_altogether_do_not_matter():
    nodes, seen = ids(1000), Density()
    for number, where in enumerate(ids(20, seed=4)):
        lies = [(f"6.6.6.{liar}", [DHTID(where ^ (i + 1)) for i in range(20)]) for liar in range(4)]
        seen.note(where, lies if number % 5 == 0 else answers(nodes, where))
    assert 700 < seen.size(nodes[0], nodes) < 1600


def test_a_place_with_too_few_nodes_says_nothing():
    nodes, seen = ids(1000), Density()
    before = seen.size(nodes[0], nodes)
    seen.note(DHTID(7), [("1.1.1.1", [DHTID(1), DHTID(2)]), ("2.2.2.2", [DHTID(1), DHTID(2)])])
    assert seen.size(nodes[0], nodes) == before


def test_the_places_searched_last_are_remembered():
    seen = Density()
    for nodes in (ids(100), ids(10_000)):
        for where in ids(density.MAX_PLACES, seed=len(nodes)):
            seen.note(where, answers(nodes, where))
    assert 7000 < seen.size(nodes[0], nodes) < 14_000
