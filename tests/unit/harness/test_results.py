import json
from pathlib import Path

import pytest

from codezero.errors import StateError
from codezero.harness.report import summary, table
from codezero.harness.solved import metrics
from codezero.runtime import results as stored
from tests.fakes import files_of_at_most


def results_in(folder, settings, lines_a_group):
    """As `codezero eval` has them."""
    paths = folder / "results.jsonl", folder / "settings.json"
    return stored.Results(*paths, settings, lines_a_group, ("group", "passed"))


def row(group, passed=True, number=0, **more):
    return {"id": f"{group}/{number}", "group": group, "passed": passed, "seconds": 0.5, **more}


def group_of(name, *passed):
    return [row(name, ok, number) for number, ok in enumerate(passed)]


def test_results_are_there_after_they_are_opened_again(tmp_path):
    with results_in(tmp_path / "a" / "b", {"seed": 0}, 2) as results:
        results.append(group_of("x", True, False))
    with results_in(tmp_path / "a" / "b", {"seed": 0}, 2) as results:
        assert results.rows == group_of("x", True, False)
        assert results.groups == {"x"}
        results.append(group_of("y", False, False))
    lines = (tmp_path / "a" / "b" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["x/0", "x/1", "y/0", "y/1"]


def test_a_full_disk_is_told_as_such(tmp_path):
    with pytest.raises(StateError, match=r"results\.jsonl: No space left on device; free space"):
        stored.Results(tmp_path / "results.jsonl", Path("/dev/full"), {"seed": 0})


def test_a_disk_that_is_full_at_a_later_group_is_told_and_what_was_written_is_kept(tmp_path):
    with results_in(tmp_path, {}, 1) as results:
        results.append(group_of("x", True))
    full = files_of_at_most((tmp_path / "results.jsonl").stat().st_size + 5)
    told = pytest.raises(StateError, match=r"cannot write to .*File too large; results so far are kept")
    with told, full, results_in(tmp_path, {}, 1) as results:
        results.append(group_of("y", True))
    with results_in(tmp_path, {}, 1) as results:
        assert results.rows == group_of("x", True)


@pytest.mark.parametrize(
    "tail",
    [b'{"id": "y/0", "gro', b'{"id": "y/0", "group": "y", "passed": true}\n', b"\xff\xfe\n", b"[]\n", b"\n", b"5\nx"],
)
def test_what_a_killed_run_left_behind_is_cut_off(tmp_path, tail):
    with results_in(tmp_path, {}, 2) as results:
        results.append(group_of("x", True, True))
    path = tmp_path / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with results_in(tmp_path, {}, 2) as results:
        assert results.groups == {"x"}
        results.append(group_of("y", True, True))
    assert path.read_bytes().startswith(whole)
    assert len(path.read_bytes().splitlines()) == 4


def test_before_anything_was_measured_other_settings_are_taken(tmp_path):
    results_in(tmp_path, {"model": "mistyped"}, 1).__exit__()
    with results_in(tmp_path, {"model": "a"}, 1) as results:
        results.append(group_of("x", True))
    with results_in(tmp_path, {"model": "a"}, 1) as results:
        assert results.groups == {"x"}


def test_other_settings_are_refused_in_one_line(tmp_path):
    with results_in(tmp_path, {"seed": 0, "model": "a"}, 1) as results:
        results.append(group_of("x", True))
    with pytest.raises(StateError, match=r"holds results with model=a, not b: give another --out") as error:
        results_in(tmp_path, {"seed": 0, "model": "b"}, 1)
    assert "\n" not in str(error.value)
    with results_in(tmp_path, {"seed": 0, "model": "a"}, 1):
        pass


def test_two_runs_cannot_share_a_folder(tmp_path):
    with results_in(tmp_path, {}, 1), pytest.raises(StateError, match="in use by another"):
        results_in(tmp_path, {}, 1)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff"])
def test_damaged_settings_are_an_error(tmp_path, damage):
    with results_in(tmp_path, {}, 1) as results:
        results.append(group_of("x", True))
    (tmp_path / "settings.json").write_bytes(damage)
    with pytest.raises(StateError, match="cannot read"):
        results_in(tmp_path, {}, 1)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="give another --out"):
        results_in(tmp_path / "file" / "x", {}, 1)


def test_metrics_by_hand():
    rows = group_of("a", True, True, False, False) + group_of("b", False, False, False, False)
    found = metrics(rows, [1, 2, 4, 8])
    assert found.keys() == {"pass@1", "pass@2", "pass@4", "average@4"}
    assert found["pass@1"].value == found["average@4"].value == 0.25
    assert found["pass@2"].value == pytest.approx((1 - 1 / 6) / 2)  # of 6 pairs one has no right solution
    assert found["pass@4"].value == 0.5
    assert (found["pass@4"].low, found["pass@4"].high) == (0.0, 1.0)


def test_the_interval_narrows_with_problems_and_vanishes_without_spread():
    few = metrics([r for n in range(10) for r in group_of(str(n), n % 2 == 0)], [1])["pass@1"]
    many = metrics([r for n in range(1000) for r in group_of(str(n), n % 2 == 0)], [1])["pass@1"]
    assert few.low < many.low < 0.5 < many.high < few.high
    assert many.high - many.low == pytest.approx(2 * 1.96 * 0.5 / 1000**0.5, rel=0.1)
    sure = metrics(group_of("a", True) + group_of("b", True), [1])["pass@1"]
    assert (sure.value, sure.low, sure.high) == (1.0, 1.0, 1.0)


def test_groups_of_unequal_size_have_an_average_without_a_number():
    found = metrics(group_of("a", True, True) + group_of("b", False), [1, 2])
    assert found.keys() == {"pass@1", "average"}
    assert found["average"].value == 0.5


def test_the_summary_counts_and_the_table_shows_it():
    rows = [*group_of("a", True), row("b", False, reason="no fenced Python block", finish="length")]
    found = summary(rows, [1], model="tiny", left_out={"row is bad": 2})
    assert (found["problems"], found["solutions"], found["passed"], found["no_code"], found["cut_off"]) == (
        2,
        2,
        1,
        1,
        1,
    )
    assert found["execution_s"] == 1.0
    assert found["model"] == "tiny"
    shown = table(found)
    assert "pass@1               0.500   0.000 to 1.000" in shown
    assert "left out: 2 x row is bad" in shown
    json.dumps(found)


def test_no_results_have_no_metrics():
    assert summary([], [1])["metrics"] == {}
