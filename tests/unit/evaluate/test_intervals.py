import math

import pytest

from codezero.evaluate.intervals import bootstrap, central, wilson


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


def test_what_could_not_be_computed_in_a_draw_is_left_out():
    assert central([math.nan, 1.0, 1.0]) == (1.0, 1.0)
