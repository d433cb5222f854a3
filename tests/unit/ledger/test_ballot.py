"""Who gets a node's vote, and what copies, many groups, many identities and ground keys do not get."""

from collections import Counter
from dataclasses import replace

import pytest

from codezero.config import Vote
from codezero.ledger import ballot
from codezero.ledger.ballot import Ballot, own_reward
from codezero.types import RoundId
from tests.builders import rollout, scored

ROUND = RoundId(number=1)


def own(*rewards, programs=b""):
    return scored([rollout()] * len(rewards), rewards, programs=programs)


def peer(name, *rewards, programs=b"", address="", text="x"):
    rollouts = [rollout(text=text)] * len(rewards)
    return scored(rollouts, rewards, external=True, peer_id=name, programs=programs, address=address)


def votes(groups_of_rounds, vote=Vote.mean, **kwargs):
    """Of one node, round by round."""
    made = Ballot(vote, "local", **kwargs)
    return [made.winners(RoundId(number=n), groups)[0] for n, groups in enumerate(groups_of_rounds, start=1)]


def wins(of, rounds=200):
    """How many of these rounds each peer wins; `of` makes the groups of a round, of a node that knows nothing yet."""
    return Counter(Ballot(Vote.mean, "local").winners(RoundId(number=n), of(n))[0] for n in range(rounds))


@pytest.mark.parametrize("vote", Vote)
@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], "local"),
        ([own(0.9, 0.9)], "local"),
        ([own(0.9, 0.9), peer("b", 0.1, -0.2)], "b"),  # itself only if it saw nobody
        ([own(0.5, 0.5), peer("b", 0.6, 0.6), peer("c", 1.0, 0.1)], "b"),
        ([peer("b", 0.5), peer("a", 0.4), peer("evil", 9.0)], "b"),
        ([own(0.5), peer("evil", 9.0)], "local"),
    ],
)
def test_the_vote_goes_to_the_other_peer_with_the_best_groups_that_is_not_banned(groups, expected, vote):
    assert votes([groups], vote, banned=["evil"]) == [expected]


@pytest.mark.parametrize(
    ("many", "vote", "expected"),
    [(0.3, Vote.mean, "one"), (0.3, Vote.sum, "many"), (0.6, Vote.mean, "many"), (0.1, Vote.sum, "one")],
)
def test_many_groups_beat_a_better_one_only_where_rewards_are_summed(many, vote, expected):
    assert votes([[peer("one", 0.5), *[peer("many", many)] * 3]], vote) == [expected]


@pytest.mark.parametrize("vote", Vote)
def test_a_group_without_a_score_is_nobody_seen(vote):
    assert votes([[replace(peer("b", 0.5), rewards=())]], vote) == ["local"]


@pytest.mark.parametrize("vote", Vote)
def test_masked_attempts_neither_win_a_vote_nor_lose_one_and_one_attempt_alone_is_no_group(vote):
    assert votes([[peer("b", 0.6, None, 0.6), peer("c", 0.5, 0.5)]], vote) == ["b"]
    assert votes([[peer("b", 0.6, None, 0.6), peer("c", 0.7, 0.7)]], vote) == ["c"]
    assert votes([[peer("b", 1.19, None, None, None), peer("c", 0.1, -0.2)]], vote) == ["c"]


def test_masked_attempts_are_not_in_the_own_reward():
    assert own_reward([own(0.5, None, 0.25), own(None, 1.0)]) == 0.75


def test_equals_draw_lots_however_many_groups_they_have_and_whatever_their_ids():
    found = wins(lambda _: [peer("a", 0.1, 0.7), *[peer("z", 0.1, 0.7)] * 3])
    assert found["a"] + found["z"] == 200
    assert min(found.values()) >= 70


@pytest.mark.parametrize("name", ["copier", "0", "zzz"])
def test_a_copy_of_what_was_seen_before_earns_nothing_also_for_its_own_author(name):
    first, again = peer("author", 0.9, programs=b"p"), peer(name, 0.9, programs=b"p", text="x ")
    assert votes([[first], [again, peer("other", 0.1)], [again]]) == ["author", "other", "local"]
    assert votes([[first], [replace(again, group=first.group), peer("other", 0.1)]]) == ["author", "other"]


def test_a_copy_of_our_own_group_earns_nothing_in_its_round_and_later():
    copy = peer("copier", 0.9, programs=b"p")
    assert votes([[own(0.9, programs=b"p"), copy], [copy]]) == ["local", "local"]


def test_short_groups_that_are_equal_are_no_copies():
    assert votes([[peer("a", 0.9)], [peer("b", 0.9)]]) == ["a", "b"]


def test_a_copy_in_the_same_round_shares_the_vote_and_never_multiplies_it():
    """Also where the copier leaves out the author's weaker group, which makes its mean the higher."""
    strong, weak = peer("author", 0.9, programs=b"p"), peer("author", 0.5, programs=b"q")
    found = wins(lambda _: [strong, weak, peer("copier", 0.9, programs=b"p"), peer("third", 0.4)])
    assert found.keys() == {"author", "copier"}
    assert min(found.values()) >= 70


def test_a_copier_with_many_identities_at_an_address_gets_the_share_of_one():
    author = peer("author", 0.9, programs=b"p", address="10.0.0.1")
    copies = [peer(f"copier {i}", 0.9, programs=b"p", address="10.0.0.2") for i in range(50)]
    assert wins(lambda _: [author, *copies])["author"] >= 70


def test_a_peer_that_is_split_into_many_identities_draws_one_lot():
    one, many = peer("one", 0.5, address="10.0.0.1"), [peer(f"i{n}", 0.5, address="10.0.0.2") for n in range(50)]
    assert wins(lambda _: [one, *many])["one"] >= 70


def test_a_key_that_wins_one_tie_wins_no_other():
    """Keys are ground against all that a peer can know: without the node's own log-probabilities it knows nothing."""

    def winner(secret, ground="z"):
        mine = scored([rollout(logprobs=(secret, -1.0))], [0.5])
        return Ballot(Vote.mean, "local").winners(ROUND, [mine, peer("honest", 0.5), peer(ground, 0.5)])[0]

    keys = [f"key {i}" for i in range(20)]
    ground = next(key for key in keys if winner(-0.5, key) == key)
    assert {winner(-0.001 * n, ground) for n in range(20)} == {"honest", ground}


def test_the_same_round_has_the_same_vote():
    groups = [own(0.5), peer("a", 0.5), peer("b", 0.5)]
    assert votes([groups]) == votes([groups])


@pytest.mark.parametrize("hostile", ["\ud800", "'); DROP", "\x1b[2J", ""])
def test_hostile_names_and_texts_are_drawn_among_as_data(hostile):
    assert votes([[peer(hostile, 0.5, text=hostile, address=hostile), peer("b", 0.1)]]) == [hostile]


def test_under_sum_copies_count_as_in_the_public_network():
    copy = peer("copier", 0.9, programs=b"p")
    assert votes([[own(0.9, programs=b"p"), copy], [copy]], Vote.sum) == ["copier", "copier"]


def test_what_is_remembered_of_groups_is_bounded(monkeypatch):
    monkeypatch.setattr(ballot, "MAX_KNOWN", 3)
    flood = [peer("flood", 0.1, programs=bytes([n])) for n in range(4)]
    first = peer("author", 0.9, programs=b"p")
    assert votes([[first], flood, [replace(first, group=peer("copier", 0.9).group)]]) == ["author", "flood", "copier"]


def test_own_reward_leaves_peers_out():
    assert own_reward([own(1.0, 2.0), peer("a", 5.0)]) == 3.0
