import itertools
import math
import random
import statistics

import pytest

from codezero.config import TrainConfig
from codezero.errors import ConfigError
from codezero.train.downsample import most_varied
from tests.builders import rollout, scored


def kept(rewards, most):
    group = most_varied(scored([rollout()] * len(rewards), rewards), most)
    return [None if reward is None else reward.total for reward in group.rewards]


@pytest.mark.parametrize(
    ("rewards", "most", "expected"),
    [
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 4, [1.0] + [None] * 4 + [0.0] * 3),
        ([0.5, 1.0, 0.4, 0.0], 2, [None, 1.0, None, 0.0]),
        ([0.5, None, 1.0, 0.0], 2, [None, None, 1.0, 0.0]),
        ([1.0, 0.0, 0.5], 0, [1.0, 0.0, 0.5]),
        ([1.0, 0.0, None], 2, [1.0, 0.0, None]),
        ([math.inf, 0.0, 1.0], 2, [math.inf, 0.0, 1.0]),
    ],
)
def test_the_highest_and_the_lowest_are_kept_where_they_vary_most(rewards, most, expected):
    assert kept(rewards, most) == expected


def test_no_other_choice_varies_more():
    rng = random.Random(0)
    for _ in range(50):
        rewards = [rng.choice([0.0, 0.3, 0.7, rng.random()]) for _ in range(7)]
        most = rng.randrange(2, 7)
        best = max(statistics.pvariance(subset) for subset in itertools.combinations(rewards, most))
        found = [total for total in kept(rewards, most) if total is not None]
        assert len(found) == most
        assert statistics.pvariance(found) == pytest.approx(best)


def test_one_attempt_alone_cannot_be_trained_on():
    with pytest.raises(ConfigError, match=r"train\.max_trained=1"):
        TrainConfig(max_trained=1)
