import math

import pytest

from codezero.evaluate import calibration
from codezero.evaluate.build import LARGE_JUDGE, SMALL_JUDGE
from codezero.evaluate.calibration import Calibration, features
from codezero.evaluate.evaluator import P_UNSURE

WEIGHTS = {"margin": 1.0, "mean": 2.0, "total": 0.5, "intercept": -1.0}
PLAIN = Calibration(likelihood=WEIGHTS, logit={"margin": 1.0})


@pytest.mark.parametrize("model", [SMALL_JUDGE, LARGE_JUDGE, "somebody/else"])
def test_every_judge_has_weights_that_rate_the_likelier_solution_higher(model):
    found = calibration.of(model)
    assert found.by_likelihood(features(0.0, [-0.1] * 50)) > found.by_likelihood(features(0.0, [-0.5] * 50))
    assert found.by_likelihood(features(2.0, [-0.3] * 50)) >= found.by_likelihood(features(-2.0, [-0.3] * 50))
    assert found.by_likelihood(features(0.0, [-0.3], 0.5)) >= found.by_likelihood(features(0.0, [-0.3], 0.0))
    assert found.by_logit(0.9, 0.1) >= found.by_logit(0.1, 0.9)


@pytest.mark.parametrize("model", [SMALL_JUDGE, LARGE_JUDGE, "somebody/else"])
def test_a_program_that_stops_its_dry_run_before_the_last_test_is_not_taken_for_right_by_that(model):
    """A table of the others passes as much as a solution does, so `passed` lifts none from even odds to 0.9."""
    found = calibration.of(model)
    for weights in (found.likelihood, found.logit):
        assert weights.get("passed", 0.0) < math.log(P_UNSURE[1] / (1 - P_UNSURE[1]))


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf in llama.cpp", SMALL_JUDGE),
        ("qwen2.5-coder:1.5b at localhost:11434", LARGE_JUDGE),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct-AWQ at gpu.example", LARGE_JUDGE),
    ],
)
def test_a_judge_outside_this_process_has_the_weights_of_its_model(judge, model):
    assert calibration.of(judge) is calibration.of(model) is not calibration.of("somebody/else")


def test_what_weights_can_decide_is_known_without_a_judge():
    assert calibration.extremes({"margin": 1.0}) == pytest.approx((0.0, 1.0))
    assert calibration.extremes({"margin": 0.0, "mean": 2.0, "intercept": 0.0}) == pytest.approx((0.0, 0.5))
    of_passed = calibration.extremes({"passed": -2.0, "intercept": 1.0})
    assert of_passed == pytest.approx((1 / (1 + math.exp(1.0)), 1 / (1 + math.exp(-1.0))))


def test_the_small_judge_decides_nothing_by_yes_or_no():
    low, high = P_UNSURE
    for model in (SMALL_JUDGE, LARGE_JUDGE, "somebody/else"):
        fitted = calibration.of(model)
        unsure = [
            low < least and most < high for least, most in map(calibration.extremes, (fitted.likelihood, fitted.logit))
        ]
        assert unsure == [False, model == SMALL_JUDGE]


def test_an_unknown_model_is_taken_at_its_word():
    assert calibration.of("somebody/else").by_logit(0.8, 0.2) == pytest.approx(0.8)


def test_features_are_weighted_by_name_and_one_that_is_not_named_counts_for_nothing():
    found = features(1.0, [-0.5, 0.0, -1.0, -0.5], passed=0.75)
    assert found == {"margin": 1.0, "mean": -0.5, "total": -2.0, "passed": 0.75}
    assert PLAIN.by_likelihood(found) == pytest.approx(1 / (1 + math.exp(2.0)))


def test_passed_tests_raise_the_odds_by_their_weight():
    of_passed = Calibration(likelihood={"passed": 2.0}, logit={"margin": 1.0, "passed": 2.0})
    assert of_passed.by_likelihood(features(0.0, [-1.0], passed=0.5)) == pytest.approx(1 / (1 + math.exp(-1.0)))
    assert of_passed.by_logit(0.5, 0.5, passed=0.5) == pytest.approx(1 / (1 + math.exp(-1.0)))


@pytest.mark.parametrize("yes", [math.nan, -0.1])
def test_what_is_no_probability_gives_none(yes):
    assert math.isnan(PLAIN.by_logit(yes, 0.5))
    assert math.isnan(PLAIN.by_logit(0.0, 0.0))
    assert math.isnan(PLAIN.by_likelihood(features(yes, [math.inf, math.nan])))


@pytest.mark.parametrize(("yes", "no", "p"), [(1.0, 0.0, 1.0), (0.0, 1.0, 0.0)])
def test_certainty_overflows_nothing(yes, no, p):
    assert PLAIN.by_logit(yes, no) == pytest.approx(p)
