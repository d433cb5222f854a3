import json

import numpy as np
import pytest
import yaml

from benchmarks import calibrate, harness
from tests.builders import save_tiny
from tests.unit.benchmarks.builders import folders, result

FUNCTION = "def f(x):\n    return {}"


def test_the_weights_are_for_the_words_that_are_asked():
    """When this fails the prompt has changed: fit the file again with benchmarks/calibrate.py."""
    assert yaml.safe_load(calibrate.FILE.read_text())["prompt"] == calibrate.prompt_hash()


def samples(path, names, *answers):
    """A file as `codezero eval` writes it: to each problem these (value of f, passed)."""
    lines = [
        {
            "group": f"mbpp/{name}",
            "source": "mbpp",
            "question": f"Add one ({name}).",
            "tests": "assert f(1) == 2\nassert f(2) == 3",
            "solution": f"```python\n{FUNCTION.format(answer)}\n```",
            "passed": passed,
        }
        for name in names
        for answer, passed in answers
    ]
    path.parent.mkdir()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def mbpp(tmp_path):
    """The file of problems, with the solution `x + 1`."""
    row = {"text": "Add one.", "code": FUNCTION.format("x + 1"), "test_list": ["assert f(1) == 2", "assert f(2) == 3"]}
    path = tmp_path / "mbpp.jsonl"
    path.write_text("".join(json.dumps({"task_id": number, **row}) + "\n" for number in (11, 12, 511, 601)))
    return str(path)


def test_calibrate_asks_fits_and_shows_how_right_the_judge_is(tmp_path, mbpp, capsys):
    model = save_tiny(tmp_path / "model")
    answers = [("1 + x", True), ("x", False), ("2", False), ("open(x)", False), ("x + 1", True), ("1 + x", True)]
    to_fit = samples(tmp_path / "fit" / "results.jsonl", (511, 601), *answers)
    to_report = samples(tmp_path / "report" / "results.jsonl", (11, 12), *answers)
    calibrate.main(
        [
            *("--fit", to_fit, "--report", to_report, "--mbpp", mbpp, "--model", model, "model.device=cpu"),
            *(*folders(tmp_path), "--weights", str(tmp_path / "weights.yaml")),
        ]
    )
    fit, reported = harness.results("calibrate", tmp_path / "results").values()
    assert [one[:2] for one in fit.counts["mbpp/511"]] == [["P", "PP"], ["F", "FF"], ["F", "PF"]]
    assert [one[:4] for one in reported.counts["mbpp/12"]] == [one[:4] for one in fit.counts["mbpp/511"]]
    entry = yaml.safe_load((tmp_path / "weights.yaml").read_text())["models"][model]
    assert entry.keys() == {"likelihood", "logit"}
    assert {"intercept"} < entry["likelihood"].keys() <= {*calibrate.FITTED["likelihood"], "intercept", "passed"}
    at_once, at_random = capsys.readouterr().out.splitlines()[-2:]
    assert f"{model} | at once | 2, 4 | " in at_once
    assert f"{model} | before some test | 4, " in at_random


def test_the_file_has_the_weights_that_the_results_give():
    made = calibrate.written(harness.results("calibrate"))
    assert made == calibrate.FILE.read_text(encoding="utf-8"), "`python -m benchmarks.calibrate` writes it"


def test_what_a_dry_run_has_decided_before_it_stops_is_not_left_open():
    solutions = {cases: [[was, cases, 1.0, 9, 0.0, -1.0]] for was, cases in (("P", "PP"), ("F", "FP"), ("F", "PF"))}
    found = result(solutions)
    assert [name for name, *_ in calibrate.left_open([found], at_once=True)] == ["PP", "FP", "PF"]
    rows = calibrate.left_open([found], at_once=False)
    assert [(name, one["passed"]) for name, _, one in rows] == [
        *(("PP", 0.0), ("PP", 0.5), ("FP", 0.0), ("PF", 0.0), ("PF", 0.5)),
    ]


def test_what_is_higher_of_wrong_solutions_is_noise_and_has_no_weight():
    solutions = {str(number): [["PF"[number % 2], "?", 1.0, 9, number % 2, -number % 5 / 9]] for number in range(40)}
    assert calibrate.weights([result(solutions)], ("margin",)).keys() == {"intercept", "passed"}


def test_logistic_regression_finds_the_weights_that_made_the_labels():
    random = np.random.default_rng(0)
    x = random.normal([0.0, 50.0], [1.0, 10.0], (4_000, 2))
    p = 1 / (1 + np.exp(-(1.5 * x[:, 0] - 0.1 * x[:, 1] + 4.0)))
    found = calibrate.logistic_regression(x, (random.random(4_000) < p).astype(float))
    assert found == pytest.approx([1.5, -0.1, 4.0], rel=0.15)
