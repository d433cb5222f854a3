import json
import math

import pytest

from codezero.errors import CommandError
from codezero.views.report.measured import compare, read_measured
from tests.unit.views.report.runs import results

SETTINGS = {"dataset": "mbpp", "model": "a", "temperature": 1.0}


def read(path, passed, settings=None):
    return read_measured(results(path, passed, settings))


def test_before_and_after_are_compared_over_the_problems_of_both(tmp_path):
    before = {f"p{number}": [False, False] for number in range(12)} | {"old": [True, True], "q": [True, False]}
    after = {f"p{number}": [number < 6, number < 6] for number in range(12)} | {"new": [True], "q": [False, False]}
    found = compare(read(tmp_path / "a", before), read(tmp_path / "b", after))
    assert (found.problems, found.only_before, found.only_after) == (13, 1, 1)
    one, two = found.rows
    assert (one.name, two.name) == ("pass@1", "pass@2")
    assert one.before.value == pytest.approx(0.5 / 13)
    assert one.after.value == pytest.approx(6 / 13)
    assert one.change.difference == pytest.approx(5.5 / 13)
    assert one.change.verdict == "rose"
    assert two.change.difference == pytest.approx(5 / 13)
    assert one.before.low <= one.before.value <= one.before.high
    assert [moved.problem for moved in found.gained] == [f"p{number}" for number in range(6)]
    (lost,) = found.lost
    assert (lost.problem, lost.before, lost.after, lost.question) == ("q", "1 of 2", "0 of 2", "What is q?")


def test_the_interval_of_the_difference_is_over_pairs_so_it_is_narrower_than_two_apart(tmp_path):
    before = {f"p{number}": [number % 2 == 0] for number in range(40)}
    after = {name: [passed or name == "p1"] for name, (passed,) in before.items()}
    (row,) = compare(read(tmp_path / "a", before), read(tmp_path / "b", after)).rows
    assert row.change.difference == pytest.approx(1 / 40)
    assert row.change.high - row.change.low < 0.2 < row.before.high - row.before.low
    assert row.change.verdict == "no clear change"


def test_k_is_what_every_problem_has_solutions_for(tmp_path):
    found = compare(read(tmp_path / "a", {"p": [True] * 4}), read(tmp_path / "b", {"p": [True] * 3}))
    assert [row.name for row in found.rows] == ["pass@1", "pass@3"]


def test_settings_that_should_be_equal_and_are_not_are_named_and_paths_are_shortened(tmp_path):
    before = read(tmp_path / "a", {"p": [True]}, {**SETTINGS, "checkpoint": None})
    after = read(tmp_path / "b", {"p": [True]}, {**SETTINGS, "temperature": 0.8, "checkpoint": "/home/me/state r-9"})
    found = compare(before, after)
    assert found.unlike == ["temperature"]
    assert ("checkpoint", "", "state r-9") in found.settings


@pytest.mark.parametrize(
    "content", [b"", b"not json\n", b'{"group":1,"passed":true}\n', b'{"group":"p","passed":true}']
)
def test_a_file_without_results_is_refused(tmp_path, content):
    (tmp_path / "results.jsonl").write_bytes(content)
    with pytest.raises(CommandError, match="has no results of `codezero eval`"):
        read_measured(tmp_path)


def test_a_missing_file_and_other_problems_are_refused(tmp_path):
    with pytest.raises(CommandError, match=r"there is no .*gone: give the results.jsonl"):
        read_measured(tmp_path / "gone")
    with pytest.raises(CommandError, match="no problem in common"):
        compare(read(tmp_path / "a", {"p": [True]}), read(tmp_path / "b", {"q": [True]}))


@pytest.mark.parametrize("settings", ["[1]", "{", "[" * 100_000, "\udcff"])
def test_damaged_settings_and_torn_lines_are_left_out(tmp_path, settings):
    folder = results(tmp_path / "a", {"p": [True, False]})
    with (folder / "results.jsonl").open("a") as file:
        file.write('{"group": "q", "pas')
    (folder / "settings.json").write_text(settings, errors="surrogateescape")
    found = read_measured(folder)
    assert (dict(found.outcomes), dict(found.settings)) == ({"p": [True, False]}, {})


def test_a_result_counts_whatever_else_its_line_holds(tmp_path):
    rows = [{"group": "a", "passed": True, "score": math.nan}, {"group": "a", "passed": False, "solution": "\ud83d"}]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_measured(tmp_path).outcomes == {"a": [True, False]}


def test_the_file_is_as_good_as_its_folder(tmp_path):
    folder = results(tmp_path / "a", {"p": [True]}, SETTINGS)
    assert read_measured(folder / "results.jsonl") == read_measured(folder)
    assert json.loads((folder / "settings.json").read_text()) == read_measured(folder).settings
