import math

import pytest

from benchmarks.quality import auc, best_accuracy, calibration_error, interval, judged_of, ranking_accuracy

RIGHT = [True, False, True, False]


@pytest.mark.parametrize(
    ("p", "expected"),
    [([0.9, 0.1, 0.8, 0.2], 1.0), ([0.1, 0.9, 0.2, 0.8], 0.0), ([0.5] * 4, 0.5), ([0.9, 0.8, 0.7, 0.1], 0.75)],
)
def test_auc_is_the_share_of_pairs_in_order(p, expected):
    assert auc(judged_of(p, RIGHT, "aaaa")) == pytest.approx(expected)


def test_ranking_looks_only_inside_a_group():
    # Between the groups the order is wrong, inside each it is right.
    judged = judged_of([0.9, 0.8, 0.2, 0.1], RIGHT, "aabb")
    assert ranking_accuracy(judged) == 1.0
    assert auc(judged) == 0.75


def test_groups_of_one_kind_rank_nothing():
    judged = judged_of([0.9, 0.1], [True, True], "aa")
    assert math.isnan(ranking_accuracy(judged))
    assert math.isnan(auc(judged))


def test_calibration_error_is_the_gap_between_said_and_so():
    assert calibration_error(judged_of([0.5, 0.5], [True, False], "ab")) == 0.0
    assert calibration_error(judged_of([1.0, 1.0, 0.0, 0.0], [False, False, True, True], "abcd")) == 1.0


def test_saying_wrong_to_all_is_a_threshold_too():
    assert best_accuracy(judged_of([0.9, 0.1, 0.2], [False, False, True], "abc")) == pytest.approx(2 / 3)


def test_interval_holds_the_measure_and_is_the_same_each_time():
    judged = judged_of([0.9, 0.8, 0.2, 0.1, 0.6, 0.5], [True, False, True, False, True, False], "aabbcc")
    low, high = interval(judged, auc)
    assert low <= auc(judged) <= high
    assert interval(judged, auc) == (low, high)
