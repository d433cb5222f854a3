import pytest

from benchmarks.power import of_mean, of_none, of_seeds, of_shares, wilson


def test_two_shares_as_in_the_tables_of_fleiss():
    """152 in each arm tell 25 % from 40 % (power.prop.test of R: 151.9)."""
    assert of_shares("", 152, 0.25).shows == pytest.approx(0.15, abs=1e-4)
    assert of_shares("", 151, 0.25).shows > 0.15


def test_a_mean_as_in_cohen():
    """An effect of half a standard deviation takes (1.95996 + 0.84162)^2 / 0.25 = 31.4 pairs."""
    assert of_mean("", 32, 1.0).shows == pytest.approx(0.495, abs=1e-3)


def test_few_seeds_show_less_than_the_normal_distribution_says():
    """80 % of runs with three seeds show 3.26 standard deviations (noncentral t)."""
    assert of_seeds("", 3, 1.0).shows == pytest.approx(3.26, rel=0.06)
    assert of_seeds("", 200, 1.0).shows == pytest.approx(of_mean("", 200, 1.0).shows, rel=0.01)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_in_newcombe_1998_table_1(successes, trials, low, high):
    found = wilson(successes, trials)
    assert (found.value, found.low, found.high) == pytest.approx((successes / trials, low, high), abs=5e-5)


def test_none_seen_is_the_rule_of_three_made_exact():
    assert of_none("", 300).shows == pytest.approx(0.01264, abs=1e-5)
    assert of_none("attacks that fool it", 300).sentence() == (
        "attacks that fool it: none in 300 problems would show that it is below 0.013"
    )


def test_an_effect_that_no_share_can_have_is_not_promised():
    assert of_shares("", 2, 0.9).shows == pytest.approx(0.1)


def test_more_units_show_less():
    for of in (of_shares, of_mean):
        assert of("", 1000, 0.3).shows < of("", 100, 0.3).shows < 0.3
