import json
import random

import pytest

from benchmarks import contest, difficulty, harness, settled, tables
from benchmarks.attacks import ATTACKS
from benchmarks.harness import RESULTS, Target
from benchmarks.mutants import mutants
from benchmarks.power import wilson
from codezero.sandbox.run import Execution
from codezero.types import CaseOutcome, CaseResult
from tests.unit.benchmarks.builders import folders, result


def test_the_document_has_the_tables_that_the_results_give():
    text = tables.PAGE.read_text(encoding="utf-8")
    assert tables.page(text) == text, f"docs/measurements.md is not what the results say: `{tables.COMMAND}`"
    for name in tables.TABLES:
        assert text.count(tables.BEGIN.format(name)) == 1
    assert text.count(tables.END) == len(tables.TABLES)


def test_every_result_is_shown_and_was_measured_on_a_commit():
    assert {path.name for path in RESULTS.iterdir()} == {name.partition("-")[0] for name in tables.TABLES}
    for path in RESULTS.glob("*/*.json"):
        result = harness.read(path)
        assert path == RESULTS / result.benchmark / f"{result.arm}.json"
        assert harness.dumps(result) == path.read_text(encoding="utf-8"), f"{path} was edited by hand"
        assert result.power
        assert all(len(sitting.commit) == 40 for sitting in result.sittings)


def test_a_changed_count_changes_the_page(monkeypatch):
    def changed(benchmark, folder=RESULTS):
        found = harness_results(benchmark, folder)
        if benchmark == "difficulty":
            found["target"].counts["weak"]["mixed"][0] += 80
        return found

    harness_results = harness.results
    text = tables.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(harness, "results", changed)
    assert tables.table("difficulty") not in text


def test_a_table_without_results_says_what_to_run(monkeypatch):
    monkeypatch.setattr(harness, "results", lambda benchmark: {})
    with pytest.raises(
        SystemExit, match=r"no results for the table difficulty: run `python -m benchmarks\.difficulty` first"
    ):
        tables.table("difficulty")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (None, "5 % [0.9, 23.6]"),
        (Target(figure="", at_most=0.01), "5 % [0.9, 23.6], at most 1 %: **missed**"),
        (Target(figure="", at_most=0.05), "5 % [0.9, 23.6], at most 5 %: met"),
        (Target(figure="", at_least=0.05), "5 % [0.9, 23.6], at least 5 %: met"),
        (Target(figure="", at_least=0.5, at_most=0.6), "5 % [0.9, 23.6], at least 50 % and at most 60 %: **missed**"),
    ],
)
def test_a_share_is_shown_with_its_interval_and_against_its_target(target, text, monkeypatch):
    monkeypatch.setattr(tables, "clustered", lambda counts: wilson(1, 20))
    assert tables.share([(1, 20), (0, 0)], target) == text


def test_a_figure_that_is_no_share_has_its_target_too():
    peak = Target(figure="peak", at_most=4.0)
    assert tables.outcome(peak, 4.1, "{:.1f} GiB") == "at most 4.0 GiB: **missed**"
    assert tables.outcome(peak, 4.0, "{:.1f} GiB") == "at most 4.0 GiB: met"


def test_the_note_of_a_table_is_of_its_own_arms():
    assert "pairs" not in tables.table("round").splitlines()[-1]
    assert "3 pairs" in tables.table("round-lora").splitlines()[-1]
    assert "engines" not in tables.table("rollout").splitlines()[-1]


def test_a_share_of_nothing_is_a_dash():
    assert tables.share([(0, 0)], Target(figure="", at_most=0.0)) == "-"


def test_difficulty_prints_every_solver_with_every_policy(tmp_path, capsys):
    difficulty.main([*folders(tmp_path), "--batches", "20", "--seeds", "2"])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[2:]] == ["| weak", "| medium", "| strong"] + [f"| {n}" for n in rows_of_difficulty()]
    assert all(len(row) == 4 for row in rows)
    found = harness.read(tmp_path / "results" / "difficulty" / "oracle.json")
    assert found.settings["groups"] == 80
    assert all(len(counts["mixed"]) == 2 for counts in found.counts.values())


def rows_of_difficulty():
    return [*list(difficulty.worlds(20))[3:], "mean"]


@pytest.fixture
def three_problems(tmp_path):
    """Two problems of the report split, and one of another that is not to be touched."""
    path = tmp_path / "mbpp.jsonl"
    adds = "def f(x):\n    return x + 1"
    tests = ["assert f(12) == 13", "assert f(204) == 205", "assert f(3999) == 4000"]
    rows = [
        {"task_id": 11, "text": "Add one.", "code": adds, "test_list": tests},
        {"task_id": 12, "text": "Read.", "code": "def g():\n    return open", "test_list": ["assert g() == open"]},
        {"task_id": 261, "text": "Add one.", "code": adds, "test_list": tests},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_settled_executes_programs_and_puts_attacks_to_wrong_ones(tmp_path, three_problems, capsys):
    settled.main([*folders(tmp_path), "--mbpp", str(three_problems)])
    results = harness.results("settled", tmp_path / "results")
    counts = results["programs"].counts
    assert list(counts) == ["11", "12"]
    assert (counts["11"][0], set(counts["11"][1:])) == ("PP", {"FF"})
    assert list(results["attacks"].counts) == ["11"]
    counts = results["attacks"].counts["11"]
    assert len(counts) == len(settled.OF_FUNCTIONS)
    assert set(counts) <= set("FR-")
    tried = len(counts) - counts.count("-")
    assert counts.count("-") == sum(attack.family == "memberships" for attack in ATTACKS)
    assert f"| each of {len(counts)} | {tried} | {tried} | 0 | 0 %" in capsys.readouterr().out


def test_what_execution_cannot_tell_in_time_is_neither_right_nor_wrong():
    passed, failed = (CaseResult(outcome=outcome) for outcome in (CaseOutcome.PASS, CaseOutcome.FAIL))
    assert settled.came_to(Execution(cases=(passed, passed), seconds=9.0)) == "P"
    assert settled.came_to(Execution(cases=(passed, failed), seconds=0.1)) == "F"
    assert settled.came_to(Execution(cases=(failed,), seconds=5.1)) == "T"
    found = result({"11": ["T?", "FP", "PP"]}, targets=[settled.WRONG, settled.REFUSED])
    *_, row = settled.programs_table({"programs": found}).splitlines()
    assert row.startswith("| with one change | 2 | 1, 0 | 100 % ")
    assert "| 50 % [" in row


def test_wrong_verdicts_of_contests_are_a_share_of_the_verdicts():
    def program(settled):
        return ["P", settled, "", 0.1, ""]

    counts = {"a": [program("P"), program("?")], "b": [program("R")], "c": [["F", "F", "", 0.1, ""]]}
    found = result(counts, targets=[contest.DECIDED, contest.WRONG, contest.REFUSED])
    right = contest.table({"programs": found, "functions": found}).splitlines()[2].split(" | ")
    assert right[1] == "3 of 2"
    assert right[3].startswith(f"0 % [0, {100 * wilson(0, 1).high:.1f}]")


def test_mutants_differ_by_one_change_and_are_the_same_each_time():
    code = "def f(x, y):\n    return x + 1 if x < y else x and y"
    found = mutants(code, 9, random.Random(0))
    assert sorted(found) == sorted(
        [
            "def f(x, y):\n    return x - 1 if x < y else x and y",
            "def f(x, y):\n    return x + 2 if x < y else x and y",
            "def f(x, y):\n    return x + 0 if x < y else x and y",
            "def f(x, y):\n    return x + 1 if x <= y else x and y",
            "def f(x, y):\n    return x + 1 if x < y else x or y",
        ]
    )
    assert mutants(code, 2, random.Random(0)) == found[:2]
    assert mutants("x = y", 3, random.Random(0)) == []


def test_samples_of_a_problem_that_agree_count_as_one():
    """100 problems whose 8 samples all agree say no more than 100 samples; 800 samples on their own would say more."""
    agreeing = tables.clustered([(8, 8), (0, 8)] * 50)
    alone = tables.clustered([(1, 1), (0, 1)] * 400)
    assert (agreeing.low, agreeing.high) == pytest.approx((0.40, 0.60), abs=0.02)
    assert (alone.low, alone.high) == pytest.approx((0.465, 0.535), abs=0.01)


def test_where_nothing_happened_in_any_cluster_the_interval_still_has_a_width():
    assert tables.clustered([(0, 8)] * 20) == wilson(0, 20)
    every = tables.clustered([(8, 8)] * 20)
    assert (every.value, every.low, every.high) == pytest.approx((1.0, 0.8389, 1.0), abs=5e-5)
    assert tables.clustered([(1, 2), (8, 16), (2, 4), (3, 6)]) == wilson(2, 4)
