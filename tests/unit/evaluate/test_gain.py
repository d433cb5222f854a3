"""What is said of a model that is measured again and again: how often it is wrong, and how soon it is right."""

import numpy as np
import pytest

from codezero.evaluate.gain import Direction, is_look, newest

PROBLEMS, SAMPLES, ROUNDS = 89, 2, 300
"""As of a node's probes, whose start has four samples a problem."""


def rates(rng, num_problems=PROBLEMS):
    """Success rates of problems as a small model has them: many near 0, few near 1, one of four solutions right."""
    return rng.beta(0.3, 0.9, num_problems)


def drawn(rng, success, samples=SAMPLES):
    return rng.binomial(samples, np.clip(success, 0, 1)) / samples


def trends(passes):
    """What was said at each look."""
    passes = passes.tolist()
    return [newest(passes[: count + 1]).direction for count in range(1, len(passes)) if is_look(count)]


def share_of_alarms(runs, passes_of):
    rng = np.random.default_rng(0)
    found = [trends(passes_of(rng)) for _ in range(runs)]
    return sum(any(one in (Direction.RISING, Direction.FALLING) for one in run) for run in found) / runs


def flat(rng, success=None):
    success = rates(rng) if success is None else success
    later = np.broadcast_to(success, (ROUNDS, len(success)))
    return np.vstack([drawn(rng, success, 4), drawn(rng, later)])


def wandering(rng):
    """Rates that go their own ways and on average nowhere: what training on other problems does at worst."""
    success, passes = rates(rng), []
    steps = rng.normal(0, 0.02, (ROUNDS + 1, PROBLEMS))
    for step in steps:
        passes.append(drawn(rng, success, SAMPLES if passes else 4))
        success = success + step * np.minimum(success, 1 - success)  # a martingale that stays in 0..1
    return np.array(passes)


@pytest.mark.parametrize(
    "passes_of",
    [
        flat,
        wandering,
        lambda rng: flat(rng, np.full(PROBLEMS, 0.01)),
        lambda rng: flat(rng, np.full(PROBLEMS, 0.97)),
        lambda rng: flat(rng, rates(rng, 20)),
    ],
    ids=["flat", "wandering", "nothing solved", "all solved", "twenty problems"],
)
def test_of_runs_of_300_flat_rounds_with_a_pass_each_at_most_one_in_twenty_raises_an_alarm(passes_of):
    """Either way, over all looks of a run. What raises one in 10 % of runs would pass with a chance of 1 in 50."""
    assert share_of_alarms(150, passes_of) <= 0.05


def moved(rng, way, num_passes):
    """Passes of a model that is better or worse by so much after the start."""
    success = rates(rng)
    after = success + way * 4 * success * (1 - success) / np.mean(4 * success * (1 - success))
    return np.vstack([drawn(rng, success, 4), drawn(rng, np.broadcast_to(after, (num_passes, PROBLEMS)))])


@pytest.mark.parametrize(("way", "direction"), [(0.1, Direction.RISING), (-0.1, Direction.FALLING)])
def test_a_change_by_ten_points_is_found_within_eight_passes(way, direction):
    rng = np.random.default_rng(1)
    found = [newest(moved(rng, way, 8).tolist()) for _ in range(100)]
    assert sum(one.direction is direction for one in found) >= 80
    assert np.mean([one.change.value for one in found]) == pytest.approx(way, abs=0.02)
    assert sum(one.change.low <= way <= one.change.high for one in found) >= 95


def test_a_fall_from_a_peak_is_told_though_the_model_is_still_better_than_at_the_start():
    rng = np.random.default_rng(2)
    success = np.full(PROBLEMS, 0.2)
    curve = [success, *[success + 0.4] * 16, *[success + 0.15] * 16]
    found = newest(drawn(rng, np.array(curve), 8).tolist())
    assert found.change.low > 0
    assert found.fall.since in (8, 12, 16)
    assert found.fall.change.value == pytest.approx(-0.25, abs=0.05)
    assert found.direction is Direction.FALLING


def test_looks_come_ever_more_seldom_and_nothing_is_said_before_the_first():
    assert [count for count in range(70) if is_look(count)] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert newest([]) is None
    assert newest([[0.0] * 5]) is None
    assert (newest([[0.0] * 5] * 12).first, newest([[0.0] * 5] * 12).last) == (5, 8)  # the look of pass 8


def test_where_nothing_is_ever_solved_the_interval_says_that_little_is_known():
    found = newest([[0.0] * PROBLEMS] * 9)
    assert (found.change.value, found.direction) == (0.0, Direction.LEVEL)
    assert found.change.low < -0.01
