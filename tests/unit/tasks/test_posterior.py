import pytest

from codezero.tasks.posterior import Posterior, p_nearer


def test_without_evidence_every_rate_is_as_likely():
    assert Posterior().p_above(0.7) == pytest.approx(0.3)
    assert Posterior().evidence == 0


@pytest.mark.parametrize(
    ("successes", "failures", "rate", "expected"),
    [(3, 0, 0.5, 1 - 0.5**4), (0, 3, 0.5, 0.5**4), (1, 1, 0.5, 0.5), (9, 0, 0.9, 1 - 0.9**10)],
)
def test_tails_are_those_of_the_beta_distribution(successes, failures, rate, expected):
    assert Posterior(successes, failures).p_above(rate) == pytest.approx(expected, abs=0.002)


def test_evidence_is_bounded_and_the_rate_follows_the_last_proposals():
    posterior = Posterior()
    for _ in range(1000):
        posterior.observe(1.0, 0.0)
    assert posterior.evidence == pytest.approx(100 / 3)
    for _ in range(33):
        posterior.observe(0.0, 1.0)
    assert posterior.rate < 0.5


def test_other_levels_proposals_widen_it_but_leave_the_rate():
    posterior = Posterior(8, 2)
    for _ in range(100):
        posterior.fade()
    assert posterior.rate == pytest.approx(0.8)
    assert posterior.evidence == pytest.approx(3.66, abs=0.01)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        (Posterior(10, 10), Posterior(20, 0), 0.95, 1.0),
        (Posterior(20, 0), Posterior(10, 10), 0.0, 0.05),
        (Posterior(18, 2), Posterior(2, 18), 0.499, 0.501),  # equally far
        (Posterior(), Posterior(20, 0), 0.8, 0.99),
    ],
)
def test_p_nearer(one, other, low, high):
    assert low <= p_nearer(one, other, 0.5) <= high


def test_p_nearer_is_the_probability_that_the_distance_is_less():
    """From 1 a uniform rate is nearer than one of Beta(2, 1), which is 2/3 on average, with probability 1 - 2/3."""
    assert p_nearer(Posterior(), Posterior(1, 0), 1.0) == pytest.approx(1 / 3, abs=0.01)
