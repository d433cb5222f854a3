import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.config import RewardScale
from codezero.train.advantage import group_advantages
from tests.builders import rollout, scored


def test_group_scale_by_hand():
    (found,) = group_advantages([[1.0, 0.0, 0.0, 0.0]], RewardScale.group)
    # mean 1/4, unbiased std 1/2: 0.75 / 0.5001 and -0.25 / 0.5001
    assert found == pytest.approx((1.49970, -0.49990, -0.49990, -0.49990), abs=1e-5)


def test_ragged_groups_are_each_their_own_baseline():
    found = group_advantages([[1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0]], RewardScale.group)
    assert found[0] == pytest.approx((0.70701, -0.70701), abs=1e-5)
    assert found[1] == pytest.approx((-0.57725, -0.57725, 1.15450), abs=1e-5)
    assert found[2] == pytest.approx((-1.78845, 0.44711, 0.44711, 0.44711, 0.44711), abs=1e-5)


def test_batch_scale_divides_by_the_std_of_all_rewards():
    found = group_advantages([[1.0, 0.0], [0.5, 0.5]], RewardScale.batch)
    # unbiased std of 1, 0, .5, .5 is 0.408248
    assert found[0] == pytest.approx((1.22444, -1.22444), abs=1e-5)
    assert found[1] == (0.0, 0.0)


def test_no_scale_only_centres():
    assert group_advantages([[2.0, 0.0, 1.0]], RewardScale.none) == ((1.0, -1.0, 0.0),)


@pytest.mark.parametrize("scale", list(RewardScale))
def test_equal_rewards_give_exactly_zero(scale):
    # 0.1 + 0.1 + 0.1 is not 0.3 in floating point, so a mean would leave a residue
    assert group_advantages([[0.1, 0.1, 0.1], [0.7], [1.0, 0.0]], scale)[:2] == ((0.0, 0.0, 0.0), (0.0,))
    assert group_advantages([[0.7]], scale) == ((0.0,),)


rewards = st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), min_size=2, max_size=17)


@given(st.lists(rewards, min_size=1, max_size=4), st.sampled_from(RewardScale))
def test_each_group_sums_to_zero_and_keeps_the_order_of_its_rewards(groups, scale):
    for group, found in zip(groups, group_advantages(groups, scale), strict=True):
        assert math.isclose(sum(found), 0.0, abs_tol=1e-6)
        pairs = sorted(zip(group, found, strict=True))
        assert all(a[1] <= b[1] for a, b in itertools.pairwise(pairs))


@given(rewards.filter(lambda group: max(group) - min(group) >= 1), st.floats(0.1, 100))
def test_group_scaled_advantages_do_not_depend_on_the_unit_of_rewards(group, factor):
    (before,), (after,) = (group_advantages([g], RewardScale.group) for g in (group, [factor * r for r in group]))
    assert after == pytest.approx(before, rel=0.02, abs=0.001)


masks = st.lists(st.tuples(st.sampled_from([-0.8, 0.2, 0.5, 0.5, 1.19]), st.booleans()), min_size=2, max_size=16)


@given(masks)
def test_masked_attempts_are_in_no_mean_and_one_attempt_left_over_teaches_nothing(attempts):
    rewards = [None if is_masked else reward for reward, is_masked in attempts]
    group = scored([rollout(text=str(i)) for i in range(len(rewards))], rewards)
    left = [i for i, reward in enumerate(rewards) if reward is not None]
    assert [int(one.text) for one, _, _ in group.rewarded] == (left if len(left) > 1 else [])
    (found,) = group_advantages([[reward.total for reward in group.earned]], RewardScale.group)
    assert len(found) == len(group.earned)
    assert math.isclose(sum(found), 0.0, abs_tol=1e-6)
    assert group.has_advantage == any(found) == (len(left) > 1 and len({rewards[i] for i in left}) > 1)


def test_a_policy_that_mostly_writes_what_nobody_can_tell_of_learns_to_write_what_is_right():
    """Masked attempts keep their logit while what is right rises above it, until nothing is left that is wrong: from
    then on nothing is learned, and what is masked keeps the share that it has."""
    random, logits, rewards = Random(0), [0.0, 1.0, 2.5], [1.19, 0.5, None]  # right, wrong, masked: 6, 17 and 76 %
    for _ in range(1_000):
        drawn = random.choices(range(3), [math.exp(logit) for logit in logits], k=8)
        group = scored([rollout(text=str(kind)) for kind in drawn], [rewards[kind] for kind in drawn])
        (found,) = group_advantages([[reward.total for reward in group.earned]], RewardScale.group)
        for (attempt, _, _), advantage in zip(group.rewarded, found, strict=True):
            # the gradient of log softmax is the choice itself less the probabilities, and advantages sum to 0
            logits[int(attempt.text)] += 0.05 * advantage
    right, wrong, masked = (math.exp(logit) / sum(map(math.exp, logits)) for logit in logits)
    assert (right > 0.75, wrong < 0.01, masked < 0.25) == (True, True, True)


def test_an_attempt_far_below_the_largest_advantage_of_the_batch_has_none():
    rewards = [[4.0, 0.0, 1.0], [0.3, 0.0]]  # centred: 7/3, -5/3, -2/3 and 0.15, -0.15
    none = group_advantages(rewards, RewardScale.none)
    assert group_advantages(rewards, RewardScale.none, 0.2) == (none[0], (0.0, 0.0))
    assert group_advantages(rewards, RewardScale.none, 0.5) == ((*none[0][:2], 0.0), (0.0, 0.0))
    assert group_advantages([[1.0, 0.0]], RewardScale.none, 1.0) == ((0.5, -0.5),)
    assert group_advantages([], RewardScale.none, 0.5) == ()
