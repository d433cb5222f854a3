import math
import random

import pytest

from codezero.evaluate import intervals
from codezero.views.charts.scale import running_mean
from codezero.views.report.change import between_thirds, paired
from codezero.views.report.words import interval, sentence, signed


def test_a_rise_beyond_its_interval_is_a_rise():
    found = between_thirds([0.1, 0.2] * 10 + [0.5] * 20 + [0.8, 0.9] * 10)
    assert (round(found.before, 2), round(found.after, 2), found.verdict) == (0.15, 0.85, "rose")
    assert 0.65 < found.low < found.difference < found.high < 0.75


def test_a_fall_is_a_fall_and_equal_thirds_are_no_change():
    assert between_thirds([0.9] * 10 + [0.5] * 10 + [0.1] * 10).verdict == "fell"
    noisy = [0.0, 1.0, 0.2, 0.8, 0.4, 0.6] * 10
    found = between_thirds(noisy)
    assert found.low < 0 < found.high
    assert found.verdict == "no clear change"
    assert "no clear change, since the interval includes 0" in sentence("Reward", found)


def test_noise_alone_is_seldom_called_a_change():
    """At 95 % one in twenty may be; the bootstrap's intervals with 10 values a third are somewhat too narrow."""
    rng = random.Random(0)
    verdicts = [between_thirds([rng.gauss(0, 1) for _ in range(30)]).verdict for _ in range(200)]
    assert verdicts.count("no clear change") >= 176


def test_too_few_rounds_have_no_interval():
    found = between_thirds([0.0] * 10 + [1.0] * 19)
    assert (found.low, found.high, found.verdict) == (None, None, "too few to tell")
    assert sentence("Reward", found) == (
        "Reward was 0.00 over the first third of its rounds and 1.00 over the last: too few rounds to tell (30 are "
        "needed)."
    )


@pytest.mark.parametrize("values", [[], [None, None], [0.5], [math.nan, math.inf, 1.0]])
def test_nothing_is_said_of_fewer_than_two_values(values):
    assert between_thirds(values) is None
    assert sentence("Reward", None) == "Reward: not known yet."


def test_unknown_rounds_are_left_out():
    assert between_thirds([None, 0.0, None, 1.0, math.inf, 2.0]).difference == 2.0


def test_pairs_are_drawn_as_pairs():
    before = [0.0, 1.0] * 10
    found = paired(before, [value + 0.1 for value in before])
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)
    assert interval(found) == "+0.10 [+0.10, +0.10]"
    assert paired([], []) is None
    assert paired([0.0], [1.0]).verdict == "too few to tell"


def test_the_same_values_always_give_the_same_interval():
    values = [0.1 * (number % 7) for number in range(60)]
    assert between_thirds(values) == between_thirds(values)


def test_the_running_mean_begins_when_its_window_is_full_and_skips_unknown_values():
    assert running_mean([1.0, 3.0, None, 5.0], 2) == [None, 2.0, 3.0, 5.0]
    assert running_mean([None, None], 2) == [None, None]


def test_zero_has_no_sign():
    assert [signed(value) for value in (-0.004, 0.0, 0.1, -1.0, None)] == ["0.00", "0.00", "+0.10", "-1.00", "unknown"]


def test_long_runs_are_drawn_in_parts_with_the_same_result(monkeypatch):
    values = [0.1 * (number % 7) for number in range(60)]
    whole = between_thirds(values)
    monkeypatch.setattr(intervals, "AT_ONCE", 33)
    assert between_thirds(values) == whole
