"""Which choice, and how much: pure arithmetic, exact."""

import math
from fractions import Fraction

import pytest

from codezero.errors import ConfigError
from codezero.services.market.stakes import NoChoice, Stakes, most_likely, shown, stakes, units


def test_the_mean_of_a_choice_decides_not_the_sum_that_favours_short_ones():
    assert most_likely({"no": [-1.0], "yes, by a long way": [-0.5, -0.5, -0.5, -0.5]}) == 1
    assert most_likely({"no": [-0.4], "yes, by a long way": [-0.5, -0.5, -0.5, -0.5]}) == 0


def test_the_first_of_equals_is_taken():
    assert most_likely({"a": [-2.0], "b": [-1.0, -1.0], "c": [-1.0]}) == 1


@pytest.mark.parametrize("tokens", [[], [math.nan], [-1.0, -math.inf], [math.inf], [0.5]], ids=str)
def test_what_is_no_likelihood_is_refused(tokens):
    with pytest.raises(NoChoice, match="no usable likelihoods"):
        most_likely({"a": [-1.0], "b": tokens})
    with pytest.raises(NoChoice, match="no usable likelihoods"):
        most_likely({})


def test_a_share_of_the_balance_is_spread_over_the_rounds_that_remain():
    assert Stakes(fraction=Fraction(1, 4)).amount(1000, 5) == 50
    assert Stakes(fraction=Fraction(1)).amount(100 * 10**18, 7) == 14285714285714285714
    assert [Stakes(fraction=Fraction(1)).amount(99, rounds) for rounds in (0, 1, 2, 1 << 53)] == [99, 99, 49, 0]


def test_no_bet_exceeds_the_cap():
    assert Stakes(fraction=Fraction(1), most=30).amount(1000, 1) == 30
    assert Stakes(fraction=Fraction(1), most=0).amount(1000, 1) == 0
    assert Stakes(fraction=Fraction(0)).amount(1000, 1) == 0


def test_settings_are_exact():
    assert stakes(0.1, "2.5") == Stakes(fraction=Fraction(1, 10), most=2_500_000_000_000_000_000)
    assert stakes(1, "").most is None
    assert units("57.142857142857142858") == 57142857142857142858
    assert units("0") == 0


@pytest.mark.parametrize(
    "text", ["-1", "x", "nan", "inf", "1e-19", "1e999999", "0.1234567890123456789", "9" * 101, "1" + "0" * 60]
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(ConfigError, match=r"market\.max_bet"):
        units(text)


def test_amounts_are_shown_exactly():
    found = [shown(amount) for amount in (0, 10**18, 25 * 10**17, 57142857142857142858, 1)]
    assert found == ["0.00", "1.00", "2.50", "57.142857142857142858", "0.000000000000000001"]
