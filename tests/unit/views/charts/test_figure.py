import re
from xml.etree import ElementTree

import pytest

from codezero.views.charts import STYLE
from codezero.views.charts.figure import line_chart, sparkline, stacked_bars
from codezero.views.charts.runs import solver_charts
from tests.unit.observe.test_monitor import report

HOSTILE = "\"><script>alert(1)</script>'\u202e\x00"


def parsed(html):
    """Charts are XML too, which a browser's forgiving parser would not tell."""
    return ElementTree.fromstring(html)


def drawn(chart):
    """The paths of its series, by name."""
    return {path.get("data-name"): path for path in chart.iter("path") if path.get("data-name")}


def test_a_line_is_broken_where_there_is_no_value():
    chart = parsed(line_chart("Reward", [1, 2, 3, 4], {"mean": [0.0, 1.0, None, 1.0]}))
    path = drawn(chart)["mean"]
    assert path.get("data-points") == "1,0 2,1 4,1"
    assert path.get("d").startswith("M46.0 166.0L168.0 8.0M412.0 8.0m")


def test_a_chart_can_be_read_without_seeing_it():
    chart = parsed(line_chart("Reward", [1, 2], {"mean": [0.25, None], "best": [1, 2]}, unit="points"))
    svg = chart.find(".//svg[@role='img']")
    title, description = (chart.find(f".//*[@id='{name}']").text for name in svg.get("aria-labelledby").split())
    assert title == "Reward"
    assert "mean 0.25 points; best 2 points" in description
    rows = [["".join(cell.itertext()) for cell in row] for row in chart.iter("tr")]
    assert rows == [["round", "mean", "best"], ["2", "\N{EN DASH}", "2"], ["1", "0.25", "1"]]


def test_lines_differ_in_more_than_colour():
    chart = parsed(line_chart("t", [1, 2], {name: [1, 2] for name in "abcdefgh"}))
    assert len({path.get("stroke-dasharray") for path in drawn(chart).values()}) == 8


def test_parts_of_bars_differ_in_more_than_colour():
    chart = parsed(stacked_bars("t", [1, 2], {name: [1, 2] for name in "abcdefgh"}))
    hatches = [pattern.find("path") for pattern in chart.iter("pattern")]
    assert len({hatch.get("d") if hatch is not None else "" for hatch in hatches}) == 8


def test_bars_stand_one_on_the_other_and_negative_ones_hang_below_zero():
    chart = parsed(stacked_bars("t", [1], {"a": [1], "b": [2], "c": [-1]}))
    edges = {
        name: [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)H[\d.]+V([\d.]+)", path.get("d"))[0]]
        for name, path in drawn(chart).items()
    }
    assert edges["a"][1] == edges["b"][0]
    assert edges["c"][0] == edges["a"][0]
    assert edges["b"][1] < edges["a"][1] < edges["c"][0] < edges["c"][1]


def test_many_bars_are_means_over_a_few_and_say_so():
    html = stacked_bars("t", range(1, 6001), {"a": [2.0] * 6000})
    path = drawn(parsed(html))["a"]
    assert path.get("d").count("M") == 60
    assert "Each bar is the mean of about 100 rounds." in html


def test_rounds_that_dropped_nothing_count_in_a_bars_mean_and_those_without_rewards_do_not():
    reports = [
        report(
            number, dropped={"stale": 10} if number % 10 else {}, reward_parts={"correct": 0.5} if number % 2 else {}
        )
        for number in range(600)
    ]
    series = {name: path for chart in solver_charts(reports, 4) for name, path in drawn(parsed(chart)).items()}
    for name, mean in (("stale", "9"), ("correct", "0.5")):
        assert {point.split(",")[1] for point in series[name].get("data-points").split()} == {mean}


def test_the_latest_value_is_that_of_the_last_round_also_of_many():
    values = [*([3.0] * 1000), 1.0, 5.0, 2.0, 3.0, 4.0]
    assert "Latest values: a 4." in line_chart("t", range(len(values)), {"a": values})


def test_high_numbers_of_rounds_are_shown_whole():
    chart = parsed(line_chart("t", range(123_450, 123_460), {"a": range(10)}))
    assert [one.text for one in chart.iter("th")][2:4] == ["123459", "123458"]
    assert [one.text for one in chart.iter("text") if one.get("text-anchor") == "middle"][:2] == ["123450", "123452"]


def test_values_that_differ_in_their_last_bits_only_are_drawn():
    assert len(drawn(parsed(line_chart("t", [1, 2], {"a": [1.0, 1 - 2**-53]})))) == 1


def test_30_000_rounds_make_a_chart_of_a_bounded_size():
    noise = [(number * 7919 % 1000) / 1000 for number in range(30_000)]
    assert len(line_chart("t", range(30_000), dict.fromkeys("abcd", noise))) < 60_000


@pytest.mark.parametrize("chart", [line_chart, stacked_bars])
def test_no_values_are_said_in_words(chart):
    for series in ({}, {"a": []}):
        assert "No values yet." in "".join(parsed(chart("t", [], series)).itertext())
    assert "No values yet." in chart("t", [1, 2], {"a": [None, None]})


@pytest.mark.parametrize("chart", [line_chart, stacked_bars])
def test_names_are_anybodys_text(chart):
    benign = chart("title", [1], {"name": [1.0]}, unit="unit", note="note", x_label="label")
    made = parsed(chart(HOSTILE, [1], {HOSTILE: [1.0]}, unit=HOSTILE, note=HOSTILE, x_label=HOSTILE))
    assert {element.tag for element in made.iter()} == {element.tag for element in parsed(benign).iter()}
    shown = "".join(made.itertext())
    assert "\\u202e" in shown
    assert "\u202e" not in shown
    assert "\x00" not in shown


@pytest.mark.parametrize("chart", [line_chart, stacked_bars])
def test_values_of_any_size_are_drawn_or_left_out(chart):
    made = chart("t", [1, 2, 3, 4], {"a": [1e308, float("inf"), 1e290, -1e290], "b": [1e-300, 0.0, -0.0, None]})
    assert "nan" not in made
    assert "inf" not in made


def test_a_sparkline_says_what_it_shows():
    made = parsed(sparkline([1, None, 2], "reward went from 1 to 2 <b>"))
    assert made.get("aria-label") == "reward went from 1 to 2 <b>"
    assert len(list(made.iter("path"))) == 1
    parsed(sparkline([], "nothing"))


def test_the_style_has_every_colour_for_light_and_dark_pages():
    for number in range(8):
        assert STYLE.count(f"--chart-{number}: #") == 2
        assert f"var(--chart-{number})" in STYLE
