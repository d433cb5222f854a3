import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.config import Strategy, SwarmConfig
from codezero.network.selection import SapoSelection
from codezero.types import RoundId
from tests.builders import rollout, scored, task

STRATEGIES = list(Strategy)


def peer(number, rewards=(1.0, 0.0), peer_id="p", address="", age=0):
    """Group `number` of a peer; the number makes its task, and so the group, one of a kind."""
    about = task(question=f"task {number}")
    rollouts = [rollout()] * len(rewards)
    return scored(rollouts, rewards, external=True, of=about, peer_id=peer_id, address=address, age=age)


def own(*rewards):
    return scored([rollout()] * len(rewards), rewards)


def choose(groups, num_external, strategy=Strategy.uniform, seed=0, number=1):
    config = SwarmConfig(num_external=num_external, strategy=strategy)
    return SapoSelection(config, seed).choose(RoundId(number=number), groups)


@st.composite
def pools(draw):
    """Any mixture of own and peers' groups: unscored, of equal rewards, or useful, of few addresses and peers."""
    rewards = st.sampled_from([(), (0.5, 0.5), (1.0, 0.0), (0.0, 0.25, 1.5), (1.0, None), (None, 1.0, 0.0)])
    return [
        own(*draw(rewards))
        if draw(st.booleans()) and draw(st.booleans())
        else peer(
            number,
            draw(rewards),
            peer_id=draw(st.sampled_from("pqrs")),
            address=draw(st.sampled_from(["", "a", "b", "c"])),
            age=draw(st.integers(0, 3)),
        )
        for number in range(draw(st.integers(0, 14)))
    ]


def useful(groups):
    return [g for g in groups if g.external and len({reward.total for reward in g.rewards if reward}) > 1]


def assert_shares_are_fair(chosen, pool, share, within):
    """Nobody has two groups more than another of the same `within` who still has one left."""
    taken, there = Counter(map(share, chosen)), Counter(map(share, pool))
    for rich in taken:
        for poor in there:
            if within(rich) == within(poor) and taken[poor] < there[poor]:
                assert taken[rich] <= taken[poor] + 1


@given(pools(), st.integers(0, 6), st.sampled_from(STRATEGIES), st.integers(0, 99))
def test_own_groups_first_then_at_most_j_different_useful_ones_in_fair_shares(groups, num_external, strategy, seed):
    found = choose(groups, num_external, strategy, seed)
    mine = [g for g in groups if not g.external]
    assert list(found[: len(mine)]) == mine
    external, pool = found[len(mine) :], useful(groups)
    assert len(external) == min(num_external, len(pool))
    assert len({id(g) for g in external}) == len(external)
    assert {id(g) for g in external} <= {id(g) for g in pool}
    assert_shares_are_fair(external, pool, lambda g: g.group.address, within=lambda address: None)
    assert_shares_are_fair(external, pool, lambda g: (g.group.address, g.group.peer_id), within=lambda key: key[0])


@given(pools(), st.sampled_from(STRATEGIES), st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter(groups, strategy, dice):
    pool = useful(groups)
    shuffled = dice.sample(pool, len(pool))
    assert choose(shuffled, 4, strategy) == choose(pool, 4, strategy)


def test_the_same_seed_and_round_choose_alike_and_others_differently():
    pool = [peer(n, peer_id=f"p{n}", address=f"a{n}") for n in range(50)]
    first = choose(pool, 5, seed=3, number=7)
    assert [g.group.peer_id for g in first] == ["p3", "p14", "p18", "p4", "p47"]
    assert choose(pool, 5, seed=3, number=7) == first
    assert choose(pool, 5, seed=4, number=7) != first
    assert choose(pool, 5, seed=3, number=8) != first


def test_equal_rewards_and_unscored_groups_are_left_out_and_none_left_is_no_error():
    pool = [peer(1, (0.5, 0.5)), peer(2, ()), peer(3, (0.7,)), peer(4, (-1.2, -1.2, -1.2))]
    assert choose([own(1.0, 0.0), *pool], 4) == (own(1.0, 0.0),)
    assert choose(pool, 4) == ()
    assert choose([], 4) == ()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(5))
def test_1000_identities_behind_one_address_take_one_share_of_four(strategy, seed):
    sybils = [peer(n, (1.7, 1.6), peer_id=f"sybil {n}", address="evil") for n in range(1000)]
    honest = [peer(2000 + n, peer_id=f"honest {n}", address=f"home {n}", age=1) for n in range(3)]
    found = Counter(g.group.address for g in choose([*sybils, *honest], 4, strategy, seed))
    assert found == {"home 0": 1, "home 1": 1, "home 2": 1, "evil": 1}  # J >= addresses: everybody has a share


def test_1000_identities_behind_one_address_come_no_earlier_than_one_would():
    sybils = [peer(n, peer_id=f"sybil {n}", address="evil") for n in range(1000)]
    honest = [peer(2000 + n, peer_id=f"honest {n}", address=f"home {n}") for n in range(3)]
    found = Counter(choose([*sybils, *honest], 1, number=n)[0].group.address for n in range(400))
    assert 70 < found["evil"] < 130  # J=1 of four addresses, 400 rounds: 100 is fair, 1000 of 1003 would be 399


def test_one_peer_with_many_groups_does_not_crowd_out_others_of_its_address():
    pool = [*(peer(n, peer_id="loud", address="a") for n in range(50)), peer(50, peer_id="quiet", address="a")]
    for number in range(20):
        assert "quiet" in {g.group.peer_id for g in choose(pool, 2, number=number)}


def test_what_others_leave_is_not_wasted():
    pool = [*(peer(n, peer_id="a", address="a") for n in range(5)), peer(9, peer_id="b", address="b")]
    assert Counter(g.group.peer_id for g in choose(pool, 4)) == {"a": 3, "b": 1}


def test_uniform_draws_every_peer_equally_often_whatever_its_reward_and_age():
    pool = [peer(n, (float(n), -1.0), peer_id=f"p{n}", address=f"a{n}", age=n % 3) for n in range(8)]
    drawn = Counter(g.group.peer_id for seed in range(4000) for g in choose(pool, 2, seed=seed))
    chi_square = sum((drawn[f"p{n}"] - 1000) ** 2 / 1000 for n in range(8))
    assert chi_square < 24.3  # 7 degrees of freedom, p = 0.001


def test_by_reward_draws_in_proportion_to_the_exponential_of_the_mean_reward():
    pool = [peer(1, (2.0, 0.0), peer_id="high", address="a"), peer(2, (1.0, -1.0), peer_id="low", address="b")]
    high = sum(choose(pool, 1, Strategy.reward, seed)[0].group.peer_id == "high" for seed in range(4000))
    assert 2820 < high < 3030  # e / (1 + e) of 4000 is 2924, with a standard deviation of 28


def test_by_reward_takes_any_finite_reward():
    pool = [peer(1, (1e6, 0.0), peer_id="high", address="a"), peer(2, (-1e6, 0.0), peer_id="low", address="b")]
    assert [g.group.peer_id for g in choose(pool, 2, Strategy.reward)] == ["high", "low"]


def test_fresh_takes_the_newest_and_draws_among_equals():
    pool = [peer(n, peer_id=f"p{n}", address=f"a{n}", age=age) for n, age in enumerate((2, 0, 1, 0))]
    found = [tuple(g.group.peer_id for g in choose(pool, 3, Strategy.fresh, seed)) for seed in range(40)]
    assert set(found) == {("p1", "p3", "p2"), ("p3", "p1", "p2")}


def test_a_peers_own_groups_are_drawn_by_the_strategy_too():
    pool = [peer(n, age=age) for n, age in enumerate(random.Random(0).sample(range(9), 9))]
    assert [g.group.age for g in choose(pool, 3, Strategy.fresh)] == [0, 1, 2]
