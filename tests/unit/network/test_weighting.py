"""How much a peer's groups count in an update."""

import pytest

from codezero.config import SwarmConfig, Weighting
from codezero.network.selection import SapoSelection
from codezero.network.weighting import MAX_WEIGHT, WINDOW
from codezero.types import RoundId
from tests.builders import rollout, scored, task


def group(right, of=16, peer_id=""):
    """A group with this many right attempts; without a peer it is an own one."""
    rewards = [1.0] * right + [0.0] * (of - right)
    return scored([rollout()] * of, rewards, external=bool(peer_id), of=task(question=peer_id), peer_id=peer_id or "me")


@pytest.fixture
def weights():
    """Plays a round with these groups; the peers' weights."""
    selection = SapoSelection(SwarmConfig(num_external=8, weighting=Weighting.accuracy), seed=0)

    def weigh(*groups):
        chosen = selection.choose(RoundId(number=1), groups)
        assert [one.weight for one in chosen if not one.external] == [1.0] * sum(not one.external for one in groups)
        return {one.group.peer_id: one.weight for one in chosen if one.external}

    return weigh


def test_who_is_right_more_often_counts_for_more(weights):
    found = weights(group(8), group(4, peer_id="weak"), group(8, peer_id="equal"), group(12, peer_id="strong"))
    assert found == {"weak": 0.75, "equal": 1.0, "strong": 1.25}  # half way to the ratio: 16 attempts beside the prior


def test_a_weight_has_a_bound_also_where_no_own_attempt_is_right(weights):
    assert weights(group(0), group(15, peer_id="p")) == {"p": MAX_WEIGHT}


def test_a_new_identity_counts_like_this_node(weights):
    assert weights(group(4, of=8), group(1, of=2, peer_id="new"))["new"] == 1.0
    assert weights(group(1, of=2, peer_id="new"))["new"] == 1.0


def test_groups_that_teach_nothing_count_for_the_accuracy(weights):
    wrong = [group(0, peer_id="p")] * 3
    assert weights(group(8), group(8, peer_id="p"), *wrong)["p"] == pytest.approx((8 + 8) / 80 / 0.5)


def test_what_was_long_ago_does_not_count(weights):
    weights(group(8), group(1, peer_id="p"))
    for _ in range(WINDOW - 1):
        assert weights(group(8), group(8, peer_id="p"))["p"] < 1
    assert weights(group(8), group(8, peer_id="p"))["p"] == 1


def test_without_the_setting_all_count_alike():
    groups = [group(1), group(15, peer_id="p")]
    assert SapoSelection(SwarmConfig(num_external=8), seed=0).choose(RoundId(number=1), groups) == tuple(groups)
