import pytest
from rich.text import Text

from codezero.runtime.amounts import brief
from codezero.views.terminal.text import bar, fit, flow, padded, sides, sparkline


def test_a_sparkline_goes_from_the_lowest_to_the_highest_shown():
    assert sparkline([0.0, 0.5, 1.0], 5) == "▁▅█  "
    assert sparkline([9.0, 0.0, 1.0], 2) == "▁█"
    assert sparkline([0.3, None, 0.3], 3) == "▄·▄"
    assert sparkline([float("nan"), 1.0, float("inf")], 3) == "·▄·"
    assert sparkline([], 2) == "  "
    assert sparkline([1.0], 0) == ""


def test_a_bar_is_full_at_one_and_empty_at_nought():
    assert [bar(share, 4) for share in (-1.0, 0.0, 0.5, 1.0, 9.0)] == ["────", "────", "━━──", "━━━━", "━━━━"]


@pytest.mark.parametrize(
    ("value", "text"), [(-3, "0s"), (59.6, "1m00s"), (125, "2m05s"), (11_220, "3h07m"), (352_800, "4d02h")]
)
def test_times_as_people_say_them(value, text):
    assert brief(value) == text


def test_what_does_not_fit_ends_with_an_ellipsis_also_between_the_halves_of_a_wide_character():
    assert fit(Text("abcdef"), 4).plain == "abc…"
    assert fit(Text("界界界"), 4).cell_len <= 4
    assert padded("界界界", 4) == "界 …"
    assert sides(Text("a long left side"), Text("right"), 12).plain == "a lon… right"


def test_entries_flow_over_lines():
    assert [line.plain for line in flow("Label", ["aaaa", "bbbb", "cccc"], 21)] == [
        "Label      aaaa  bbbb",
        "           cccc",
    ]
