"""The reward of test cases: what is worth writing, and what games the rule without knowing anything."""

from itertools import product

import pytest

from codezero.types import CaseOutcome
from codezero.verifier.reward import CaseResults, judge

P, F, U = CaseOutcome.PASS, CaseOutcome.FAIL, CaseOutcome.UNKNOWN


def judged(is_right, reference=(P, P), candidate=(P, P), wrong=None, inputs=(0, 1)):
    if wrong is None:
        wrong = () if is_right else (candidate,)
    return judge(CaseResults(inputs=inputs, reference=reference, candidate=candidate, wrong=wrong), is_right)


def rewards(is_right, **results):
    return judged(is_right, **results).reward.total


def test_valid_cases_that_refuse_a_wrong_candidate_earn_all():
    found = judged(False, candidate=(P, F))
    assert (found.valid, found.approves, found.right, found.reward.total) == (True, False, True, 1.0)
    assert found.reward.parts == {"valid": 0.5, "diagnosis": 0.5}


def test_valid_cases_that_approve_of_a_right_candidate_earn_all():
    assert rewards(True) == 1.0


@pytest.mark.parametrize(("passing", "reward"), [(0, 1.0), (1, 0.875), (2, 0.75), (3, 0.625)])
def test_refusing_a_wrong_candidate_is_worth_more_the_more_wrong_ones_are_rejected(passing, reward):
    wrong = [(F, P)] * (4 - passing) + [(P, P)] * passing
    assert rewards(False, candidate=(F, P), wrong=wrong) == reward


def test_trivial_inputs_that_everybody_passes_earn_the_base_rate_only():
    assert [rewards(is_right, wrong=[(P, P)] * 3) for is_right in (True, False)] == [1.0, 0.5]


def test_always_refusing_by_wrong_results_earns_nothing():
    refused = {"reference": (F, F), "candidate": (F, F), "wrong": [(F, F)]}
    assert [rewards(is_right, **refused) for is_right in (True, False)] == [0.0, 0.0]


def test_refusing_a_right_candidate_by_valid_cases_earns_for_validity_only():
    """It passes the task's tests and not these: the truth that is at hand says that it is right."""
    found = judged(True, candidate=(P, F))
    assert (found.valid, found.right, found.reward.total) == (True, False, 0.5)


def test_one_valid_case_of_two_earns_for_itself_and_gives_no_diagnosis():
    found = judged(False, reference=(P, F), candidate=(F, F))
    assert (found.valid, found.right, found.reward.total) == (False, False, 0.25)


@pytest.mark.parametrize(("inputs", "reward"), [((), 0.0), ((0,), 0.25)], ids=["no-case", "one-case"])
def test_fewer_cases_than_asked_for_earn_for_those_that_are_valid(inputs, reward):
    same = (P,) * len(inputs)
    assert rewards(True, inputs=inputs, reference=same, candidate=same) == reward


def test_two_cases_with_equal_inputs_count_as_one():
    found = judged(True, inputs=(0, 0))
    assert (found.valid, found.right, found.reward.total) == (False, False, 0.25)


@pytest.mark.parametrize(
    "results",
    [
        {"reference": (P, U)},
        {"reference": (F, U)},
        {"candidate": (P, U)},
        {"reference": (U, U), "candidate": (F, F)},
        {"reference": (U,), "candidate": (P,), "inputs": (0,)},
    ],
    ids=["reference", "reference-fails-one", "candidate", "both", "one-case"],
)
@pytest.mark.parametrize("is_right", [True, False])
def test_what_cannot_be_told_is_masked(results, is_right):
    assert judged(is_right, **results) is None


def test_a_case_that_the_candidate_fails_decides_whatever_the_other_would_do():
    assert rewards(False, candidate=(U, F), wrong=[(U, F)]) == 1.0


def test_wrong_candidates_of_which_nothing_is_known_are_not_rejected():
    assert rewards(False, candidate=(F, P), wrong=[(F, P), (U, P), (P, P), (P, P)]) == 0.625


def test_nothing_earns_more_than_one_or_less_than_nothing():
    for is_right, *cases in product((True, False), product((P, F), repeat=2), product((P, F), repeat=2)):
        assert 0.0 <= rewards(is_right, reference=cases[0], candidate=cases[1]) <= 1.0
