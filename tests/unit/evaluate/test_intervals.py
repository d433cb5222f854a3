import math

import pytest

from codezero.evaluate.intervals import bootstrap, central


def test_the_bootstrap_of_a_mean_is_about_two_standard_errors_wide_and_repeats_itself():
    values = [0.0, 1.0] * 200
    found = bootstrap(values)
    assert found == bootstrap(values)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.451, 0.549), abs=0.005)


def test_what_could_not_be_computed_in_a_draw_is_left_out():
    assert central([math.nan, 1.0, 1.0]) == (1.0, 1.0)
