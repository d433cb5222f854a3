import pytest

from codezero.evaluate.metrics import averages, pass_at_k
from tests.builders import group, rollout, scored


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(4, 0, 4, 0), (4, 1, 4, 1), (4, 1, 1, 0.25), (4, 2, 2, 5 / 6), (2, 2, 1, 1)]
)
def test_pass_at_k(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected)


def test_averages_over_groups_leave_unscored_ones_out():
    two_of_four, none_of_two = scored([rollout()] * 4, [1, 0.6, 0.4, 0]), scored([rollout()] * 2, [0, 0.1])
    unscored = type(two_of_four)(group=group([rollout()]), verdicts=(), rewards=())
    assert averages([two_of_four, none_of_two, unscored]) == (0.25, 0.5)
    assert averages([unscored]) == (None, None)


def test_averages_leave_masked_attempts_out_also_where_the_judge_finds_them_rather_right():
    assert averages([scored([rollout()] * 4, [1, None, 0, None]), scored([rollout()] * 2, [None, 1])]) == (0.5, 1.0)
