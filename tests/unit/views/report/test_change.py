import pytest

from codezero.views.charts.scale import running_mean
from codezero.views.report.change import interval, paired, signed


def test_pairs_are_drawn_as_pairs():
    before = [0.0, 1.0] * 10
    found = paired(before, [value + 0.1 for value in before])
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)
    assert interval(found) == "+0.10 [+0.10, +0.10]"
    assert paired([0.0], [1.0]).verdict == "too few to tell"


def test_the_running_mean_begins_when_its_window_is_full_and_skips_unknown_values():
    assert running_mean([1.0, 3.0, None, 5.0], 2) == [None, 2.0, 3.0, 5.0]
    assert running_mean([None, None], 2) == [None, None]


def test_zero_has_no_sign():
    assert [signed(value) for value in (-0.004, 0.0, 0.1, -1.0, None)] == ["0.00", "0.00", "+0.10", "-1.00", "unknown"]
