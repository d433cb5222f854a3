import math

import pytest

from codezero.evaluate.intervals import bootstrap, central, clustered, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_in_newcombe_1998_table_1(successes, trials, low, high):
    found = wilson(successes, trials)
    assert (found.value, found.low, found.high) == pytest.approx((successes / trials, low, high), abs=5e-5)


def test_the_bootstrap_of_a_mean_is_about_two_standard_errors_wide_and_repeats_itself():
    values = [0.0, 1.0] * 200
    found = bootstrap(values)
    assert found == bootstrap(values)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.451, 0.549), abs=0.005)


def test_samples_of_a_problem_that_agree_count_as_one():
    """100 problems whose 8 samples all agree say no more than 100 samples; 800 samples on their own would say more."""
    agreeing = clustered([(8, 8), (0, 8)] * 50)
    alone = clustered([(1, 1), (0, 1)] * 400)
    assert (agreeing.low, agreeing.high) == pytest.approx((0.40, 0.60), abs=0.02)
    assert (alone.low, alone.high) == pytest.approx((0.465, 0.535), abs=0.01)


def test_where_nothing_happened_in_any_cluster_the_interval_still_has_a_width():
    assert clustered([(0, 8)] * 20) == wilson(0, 20)
    every = clustered([(8, 8)] * 20)
    assert (every.value, every.low, every.high) == pytest.approx((1.0, 0.8389, 1.0), abs=5e-5)


def test_what_could_not_be_computed_in_a_draw_is_left_out():
    assert central([math.nan, 1.0, 1.0]) == (1.0, 1.0)
