import pytest

from codezero.views.charts.scale import MAX_POINTS, downsample, format_number, ticks


def test_few_points_are_kept_as_they_are_with_their_gaps():
    assert downsample([1, 2, 4], [0.5, None, -1]) == [(1.0, 0.5), (2.0, None), (4.0, -1.0)]


def test_of_many_points_every_spike_is_kept_in_its_place():
    y = [0.0] * 30_000
    y[12_345], y[20_000] = 9.0, -9.0
    kept = downsample(range(30_000), y)
    assert len(kept) <= MAX_POINTS
    assert (12_345.0, 9.0) in kept
    assert (20_000.0, -9.0) in kept
    assert kept == sorted(kept)


def test_a_long_gap_stays_one_and_a_short_one_among_many_points_does_not():
    y = [1.0] * 10_000
    y[2_000:6_000] = [None] * 4_000
    y[9_000] = None
    gaps = [at for at, value in downsample(range(10_000), y) if value is None]
    assert gaps
    assert all(2_000 <= at < 6_000 for at in gaps)


@pytest.mark.parametrize("value", [1e308, -1e308, float("inf"), float("nan")])
def test_what_cannot_be_drawn_is_a_gap(value):
    assert downsample([1], [value]) == [(1.0, None)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-0.2, 0.9, [-0.5, 0, 0.5, 1]),
        (0, 4, [0, 1, 2, 3, 4]),
        (0, 3e9, [0, 1e9, 2e9, 3e9]),
        (5, 5, [2, 3, 4, 5, 6, 7, 8]),
        (0, 0, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_round_and_hold_the_values(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_ticks_of_rounds_are_whole():
    assert ticks(1, 3, 8, whole=True) == [1, 2, 3]
    assert ticks(7, 7, 8, whole=True) == [7, 8]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "\N{EN DASH}"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.12345, "0.123"),
        (-1.5, "\N{MINUS SIGN}1.5"),
        (1000, "1000"),
        (1234.5, "1234"),
        (12_345, "12.35k"),
        (3_000_000, "3M"),
        (-2e9, "\N{MINUS SIGN}2G"),
        (1e300, "1.0e+300"),
    ],
)
def test_a_value_is_short(value, expected):
    assert format_number(value) == expected
