"""`codezero eval` from the command line, on a tiny random model and on solutions made up."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch

from codezero.cli import main
from codezero.config import Device, Dtype
from codezero.errors import CheckpointError
from codezero.harness import best, policy
from codezero.harness.sources import ProblemSource, load
from codezero.policy import solver as policy_solver
from codezero.policy.trained import with_weights
from codezero.runtime import limits, state
from codezero.train.checkpoint import CheckpointStore, trainable_weights
from codezero.types import FinishReason, Rollout, RolloutGroup
from codezero.verifier.write import CaseAnswer
from tests.builders import save_tiny
from tests.commands import interrupted
from tests.strangers import Reader

MBPP = [
    {"task_id": n, "text": f"Write add{n}.", "test_list": [f"assert add{n}(1, 2) == 3"], "test_setup_code": ""}
    for n in (11, 12, 13, 14, 601)
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "mbpp.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in MBPP))
    return path


def stored(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_in(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def evaluate(*arguments):
    return main(["eval", *map(str, arguments)])


def error_of(capsys, *arguments):
    assert evaluate(*arguments) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    return error


def fence(code):
    return f"```python\n{code}\n```"


@pytest.fixture
def written(monkeypatch):
    """The model's answers are replaced: what it is asked, and the answers by question."""
    asked = []

    class Scripted:
        def __init__(self, num_samples, seed):
            self.num_samples, self.seed = num_samples, seed

        def solve(self, tasks, policy_version):
            asked.append((self.seed, [task.question.splitlines()[0] for task in tasks]))
            return tuple(self.group(task) for task in tasks if "add13" not in task.question)

        def group(self, task):
            name = task.question.split()[1].rstrip(".")
            codes = [f"def {name}(a, b): return a + b", f"def {name}(a, b): return a - b"] * self.num_samples
            codes = codes[: self.num_samples] if name == "add11" else ["x = ("] * self.num_samples
            texts = [fence(code) for code in codes]
            rollouts = tuple(Rollout(text=text, finish=FinishReason.STOP) for text in texts)
            return RolloutGroup(peer_id="p", model_id="m", policy_version=0, task=task, rollouts=rollouts)

    monkeypatch.setattr(policy, "load_policy", lambda *_: (None, "nothing"))
    monkeypatch.setattr(policy, "rows_at_once", lambda *_: 16)
    monkeypatch.setattr(policy_solver, "measuring_solver", lambda _, num, *rest: Scripted(num, rest[2]))
    return asked


def test_a_model_is_measured(problems, written, tmp_path, capsys):
    out, summary = tmp_path / "out", tmp_path / "summary.json"
    options = ["--dataset", "mbpp", "--path", problems, "--out", out, "--samples", 2, "--temperature", 1, "--k", "1,2"]
    assert evaluate(*options, "--json", summary) == 0
    found = json.loads(summary.read_text())
    assert (found["problems"], found["solutions"], found["passed"], found["no_code"]) == (4, 8, 1, 2)
    assert found["metrics"]["pass@1"]["value"] == 0.125
    assert found["metrics"]["pass@2"]["value"] == 0.25
    assert found["model"] == "Qwen2.5-Coder-0.5B-Instruct"
    shown = capsys.readouterr()
    assert "pass@2               0.250" in shown.out
    assert "sandbox: " in shown.err
    rows = rows_in(out)
    assert [(row["id"], row["passed"]) for row in rows[:2]] == [("mbpp/11/0", True), ("mbpp/11/1", False)]
    assert rows[1]["cases"] == ["fail"]
    assert rows[1]["reason"] == "AssertionError"
    assert rows[2]["reason"].startswith("SyntaxError")
    assert {"id", "group", "source", "question", "tests", "solution", "finish", "passed", "cases", "seconds"} <= set(
        rows[0]
    )
    too_long = [row for row in rows if row["group"] == "mbpp/13"]
    assert [(row["solution"], row["passed"], row["finish"]) for row in too_long] == [("", False, "length")] * 2


def test_the_best_of_several_is_chosen_by_what_is_shown_and_by_written_tests(
    problems, written, tmp_path, capsys, monkeypatch
):
    asked = []

    def write_cases(model, subjects, num_answers, **options):
        asked.append([(one.function, one.problem, one.code) for one in subjects])
        answer = CaseAnswer(cases=("assert add11(2, 2) == 4", "assert add11("))
        return [[answer] * num_answers for _ in subjects]

    monkeypatch.setattr(best, "write_cases", write_cases)
    monkeypatch.setattr(policy, "load_policy", lambda *_: (SimpleNamespace(model=SimpleNamespace(device="cpu")), "cpu"))
    out, summary = tmp_path / "out", tmp_path / "summary.json"
    first = {**MBPP[0], "test_list": [*MBPP[0]["test_list"], "assert add11(5, 5) == 10"]}
    stored(problems, first, *MBPP[1:])
    options = ["--dataset", "mbpp", "--path", problems, "--out", out, "--best-of", 3, "--verify", "--temperature", 1]
    assert evaluate(*options, "--json", summary) == 0
    assert not any("add11(5, 5)" in row["question"] for row in rows_in(out))
    metrics = {name: one["value"] for name, one in json.loads(summary.read_text())["metrics"].items()}
    assert metrics["pass@1"] == pytest.approx(1 / 6)
    assert [metrics[f"best by {way}"] for way in ("shown", "majority", "agreement", "tests")] == [0.25] * 4
    (first_asked, *others) = asked[0]
    assert [name for name, *_ in others] == ["add12", "add14"]
    assert first_asked[0] == "add11"
    assert first_asked[1].endswith("assert add11(1, 2) == 3")
    assert first_asked[2] == "def add11(a, b): return a + b"
    rows = rows_in(out)
    assert [row["ranks"]["tests"] for row in rows[:3]] == [3, 0, 3]
    assert rows[0]["written"] == ["assert add11(2, 2) == 4", "assert add11("]
    assert [row["in_prompt"] for row in rows[:3]] == [True, False, False]
    assert rows[0]["cases"] == ["pass", "pass"]
    shown = capsys.readouterr().out
    assert re.search(r"best by tests +0\.250", shown)
    assert "best by tests: of these, one that passes the most tests that the model has written" in shown


def test_a_stopped_run_goes_on_with_what_is_missing_and_the_same_samples(problems, written, tmp_path):
    out = tmp_path / "out"
    options = ["--dataset", "mbpp", "--path", problems, "--out", out, "--batch", 2]
    assert evaluate(*options) == 0
    whole, seeds = rows_in(out), written.copy()
    path = out / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    written.clear()
    assert evaluate(*options) == 0
    assert [(row["id"], row["solution"]) for row in rows_in(out)] == [(row["id"], row["solution"]) for row in whole]
    assert written == [seeds[1]]  # the whole batch: what is sampled beside a solution changes it
    written.clear()
    assert evaluate(*options) == 0
    assert written == []


def test_more_problems_go_on_and_other_settings_are_refused(problems, written, tmp_path, capsys):
    options = ["--dataset", "mbpp", "--path", problems, "--out", tmp_path / "out"]
    assert evaluate(*options, "--limit", 1) == 0
    assert len(rows_in(tmp_path / "out")) == 1
    assert evaluate(*options) == 0
    assert len(rows_in(tmp_path / "out")) == 4
    error = error_of(capsys, *options, "--seed", 1)
    assert "holds results with seed=0, not 1: give another --out" in error


@pytest.mark.parametrize("edit", [{"text": "Add a and b."}, {"test_list": ["assert add11(1, 2) == 4"]}])
def test_added_problems_go_on_and_edited_ones_are_refused(problems, written, tmp_path, capsys, edit):
    options = ["--dataset", "mbpp", "--path", problems, "--out", tmp_path / "out"]
    stored(problems, *MBPP[:2])
    assert evaluate(*options) == 0
    stored(problems, *MBPP)
    assert evaluate(*options) == 0
    assert len(rows_in(tmp_path / "out")) == 4
    stored(problems, {**MBPP[0], **edit}, *MBPP[1:])
    assert "mbpp/11 has another question or other tests than the results so far" in error_of(capsys, *options)


def test_a_tiny_model_writes_solutions_that_are_executed(model, problems, tmp_path, capsys):
    options = ["--dataset", "mbpp", "--path", problems, "--model", model, "--device", "cpu", "--threads", 1]
    options += ["--max-new-tokens", 8, "--out", tmp_path / "out", "--limit", 2]
    assert evaluate(*options) == 0
    rows = rows_in(tmp_path / "out")
    assert [row["passed"] for row in rows] == [False, False]
    assert all(row["solution"] and row["finish"] in ("stop", "length") for row in rows)
    shown = capsys.readouterr()
    assert "2 problems, 2 solutions: 0 passed, 2 without code" in shown.out
    assert f"on cpu, float32, 1 thread, {policy.ROWS} completions at a time" in shown.err


@pytest.mark.parametrize(("bytes_left", "rows"), [(1 << 40, policy.ROWS), (0, 1)])
def test_as_many_completions_are_written_at_a_time_as_memory_holds(model, tmp_path, monkeypatch, bytes_left, rows):
    loaded, _ = policy.load_policy(model, str(tmp_path), Device.cpu, Dtype.float32, 1, None)
    monkeypatch.setattr(limits, "memory_left", lambda: bytes_left)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=bytes_left))
    assert policy.rows_at_once(loaded, ["Write f."], 8) == rows


def test_weights_are_those_of_the_checkpoint_that_is_named_or_none(model, tmp_path):
    folder = tmp_path / "state"
    loaded, _ = policy.load_policy(model, str(tmp_path), Device.cpu, Dtype.float32, 1, None)
    store = CheckpointStore(folder / "checkpoints")
    state.bind_settings(folder, {"model.name": model, "train.method": "full"})
    for number in (1, 2):
        weights = {name: torch.full_like(weight, number) for name, weight in trainable_weights(loaded.model).items()}
        store.save(number, number, {"weights": weights}, {})
    (folder / "checkpoints" / "round-00000002" / "learner.pt").write_bytes(b"")

    def measured():
        trained = policy.trained_in(folder)
        return trained.checkpoint, next(with_weights(loaded, trained).model.parameters()).mean().item()

    with pytest.raises(CheckpointError, match=r"round-00000002 cannot be read .* start again, after moving it away"):
        measured()
    (folder / "checkpoints" / "round-00000002").rename(tmp_path / "away")
    assert measured() == ("round-00000001", 1.0)


def test_a_folder_that_was_begun_anew_does_not_go_on_with_the_results_of_the_one_before(
    problems, written, tmp_path, capsys
):
    folder = tmp_path / "state"
    options = ["--dataset", "mbpp", "--path", problems, "--checkpoint", folder, "--out", tmp_path / "out"]

    def begin(weight):
        shutil.rmtree(folder, ignore_errors=True)
        store = CheckpointStore(folder / "checkpoints")
        state.bind_settings(folder, {"model.name": "m", "train.method": "full"})
        store.save(1, 1, {"weights": {"w": torch.tensor([weight])}}, {})

    begin(1.0)
    assert evaluate(*options) == 0
    assert evaluate(*options) == 0
    begin(2.0)
    assert "holds results with checkpoint=" in error_of(capsys, *options)


@pytest.mark.slow
@pytest.mark.usefixtures("restored_process")
def test_a_nodes_trained_weights_are_measured(model, problems, tmp_path, capsys):
    state = tmp_path / "state"
    node = ["run", "preset=local", f"model.name={model}", f"evaluator.model={model}"]
    node += ["rounds=1", f"state_dir={state}", f"tracking.log_dir={tmp_path}/logs", "model.device=cpu"]
    node += [
        "train.method=full",
        "rollout.num_generations=2",
        "rollout.max_new_tokens=8",
        "swarm.num_local=2",
        "probe.share=0",
        "evaluator.dry_run=false",
    ]
    assert main(node) == 0
    capsys.readouterr()
    options = ["--dataset", "mbpp", "--path", problems, "--checkpoint", state, "--device", "cpu", "--threads", 1]
    options += ["--max-new-tokens", 8, "--limit", 1]
    assert evaluate(*options, "--out", tmp_path / "out") == 0
    assert len(rows_in(tmp_path / "out")) == 1
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert re.search("state round-00000001 [0-9a-f]{8}$", settings["checkpoint"])
    assert settings["model"] == model
    assert "leave --model out" in error_of(capsys, *options, "--model", "other", "--out", tmp_path / "other")
    best = [one if one != state else state / "best" for one in options]
    assert "has no best checkpoint" in error_of(capsys, *best, "--out", tmp_path / "best")
    store = CheckpointStore(state / "checkpoints")
    store.load_latest()
    assert store.keep_best()
    assert evaluate(*best, "--out", tmp_path / "best") == 0
    settings = json.loads((tmp_path / "best" / "settings.json").read_text())
    assert re.search("state best, of round 1 [0-9a-f]{8}$", settings["checkpoint"])


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_the_same_command_goes_on(model, tmp_path, capsys):
    rows = [{**MBPP[0], "task_id": n, "text": f"Write f{n}."} for n in range(11, 411)]
    path, out = stored(tmp_path / "mbpp.jsonl", *rows), tmp_path / "out"
    command = ["eval", "--dataset", "mbpp", "--path", path, "--model", model, "--device", "cpu", "--threads", 1]
    command += ["--max-new-tokens", 8, "--batch", 1, "--out", out]
    code, said = interrupted(command, out / "results.jsonl")
    assert (code, said[-1]) == (130, f"stopped: results so far are in {out}; the same command continues")
    assert any("0/400" in line for line in said)
    before = rows_in(out)
    assert evaluate(*command[1:], "--limit", len(before) + 1) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{len(before) + 1} problems")
    assert "tokens/s" in shown.err
    assert rows_in(out)[:-1] == before


GOOD = {"question": "q", "tests": "assert f(1) == 2", "solution": fence("def f(x): return x + 1")}


def test_stored_solutions_are_executed_without_a_model(tmp_path):
    path = stored(
        tmp_path / "s.jsonl",
        {**GOOD, "id": "a", "group": "g", "extra": 5},
        {**GOOD, "id": "b", "group": "g", "solution": fence("def f(x): return x")},
        {**GOOD, "tests": ["assert f(1) == 2", "assert f(2) == 2"]},
        {**GOOD, "solution": "no code"},
        {**GOOD, "tests": "Input:\n1\nOutput:\n1\n", "solution": fence("print(input())"), "source": "code_contests"},
    )
    code = (
        "import sys; from codezero.cli import main; assert main(sys.argv[1:]) == 0; assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", code, "eval", "--score", str(path), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert "4 problems, 5 solutions: 2 passed, 1 without code" in done.stdout
    rows = rows_in(tmp_path / "out")
    assert [row["passed"] for row in rows] == [True, False, False, False, True]
    assert rows[0]["extra"] == 5
    assert rows[2]["cases"] == ["pass", "fail"]
    assert [row["id"] for row in rows] == ["a", "b", "2", "3", "4"]


def test_scoring_goes_on_where_it_was_and_other_contents_are_refused(tmp_path, capsys):
    path = stored(tmp_path / "s.jsonl", GOOD, GOOD, GOOD)
    options = ["--score", path, "--out", tmp_path / "out"]
    assert evaluate(*options) == 0
    results = tmp_path / "out" / "results.jsonl"
    first = results.read_bytes().splitlines(keepends=True)[0]
    results.write_bytes(first)
    assert evaluate(*options) == 0
    assert len(rows_in(tmp_path / "out")) == 3
    assert results.read_bytes().startswith(first)
    stored(path, GOOD)
    assert "holds results with score=" in error_of(capsys, *options)


@pytest.mark.parametrize("ranks", [None, 5, {"shown": 1.0}, {"luck": 1.0}, ["luck"]])
def test_ranks_in_stored_lines_are_left_out(ranks, tmp_path, capsys):
    lines = {**GOOD, "ranks": ranks, "written": [], "in_prompt": True, "group": "g"}, {**GOOD, "group": "g"}
    assert evaluate("--score", stored(tmp_path / "s.jsonl", *lines), "--out", tmp_path / "out") == 0
    assert "best by" not in capsys.readouterr().out
    assert not {"ranks", "written", "in_prompt"} & rows_in(tmp_path / "out")[0].keys()


def test_hostile_lines_are_left_out_and_counted(tmp_path, capsys):
    hostile = [5, [], "x", {}, {**GOOD, "tests": 5}, {**GOOD, "tests": [5]}, {**GOOD, "tests": "assert ("}]
    hostile += [{**GOOD, "solution": None}, {**GOOD, "question": {}}, {**GOOD, "tests": "x" * 30_000}]
    hostile += [{**GOOD, "prelude": 5}]
    path = stored(tmp_path / "s.jsonl", *hostile, {**GOOD, "id": ["x"], "group": 7, "passed": True, "cases": 3})
    with path.open("ab") as file:
        file.write(b'{"question": \xff}\n{"a"')
    assert evaluate("--score", path, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "1 problems, 1 solutions: 1 passed" in shown
    assert "left out: 2 x tests have no case that can be run" in shown
    assert "left out: 2 x line is not JSON" in shown.splitlines()
    assert rows_in(tmp_path / "out")[0]["cases"] == ["pass"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "mbpp", "--path", "gone.jsonl"], "gone.jsonl does not exist"),
        (["--score", "gone.jsonl"], "gone.jsonl does not exist"),
        (["--dataset", "mbpp", "--k", "1,5"], "--k 5 needs as many solutions a problem: use --samples 5"),
        (["--dataset", "mbpp", "--verify"], "--verify chooses one of several solutions: use --best-of 8 too"),
        (["--dataset", "mbpp", "--best-of", "2", "--writer", "state"], "use --best-of 8 --verify too"),
        (
            ["--dataset", "mbpp", "--path", "FILE", "--best-of", "1", "--verify", "--writer", "gone"],
            "gone holds no test writer: give the state_dir of a `codezero verify`",
        ),
        (["--dataset", "mbpp", "--best-of", "2"], "would be equal at temperature 0: use --temperature 0.8"),
        (["--dataset", "mbpp", "--samples", "2"], "would be equal at temperature 0: use --temperature 0.8"),
        (["--dataset", "mbpp", "--path", "FILE", "--split", "prompt"], "no rows in this split"),
        (["--dataset", "humaneval", "--path", "FILE"], "give rows in the schema of openai/openai_humaneval"),
        (["--dataset", "mbpp", "--path", "FILE", "--checkpoint", "gone"], "holds no checkpoint"),
        (["--dataset", "mbpp", "--path", "FILE", "--model", "no/such/model"], "no/such/model"),
        (["--score", "EMPTY"], "0 bytes"),
        (["--score", "rows.parquet"], "rows.parquet is not a .jsonl file: give JSON lines with tests and solution"),
        (["--score", "EMPTY", "--checkpoint", "gone"], "--score executes stored solutions: leave out --checkpoint"),
        (["--score", "EMPTY", "--best-of", "2"], "leave out --best-of"),
        (["--score", "EMPTY", "--seed", "2"], "leave out --seed"),
        (["--score", "STORED", "--k", "1,2"], "--k 2 needs as many solutions a problem: one has 1, give a smaller k"),
        (["--dataset", "mbpp"], "or give the problems in a file, with --path"),
    ],
)
def test_every_mistake_is_one_line(arguments, message, problems, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty.jsonl").write_text("")
    stored(tmp_path / "stored.jsonl", GOOD)
    files = {"FILE": str(problems), "EMPTY": "empty.jsonl", "STORED": "stored.jsonl"}
    arguments = [files.get(argument, argument) for argument in arguments]
    assert message in error_of(capsys, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--dataset", "mbpp", "--score", "x"],
        ["--dataset", "imagenet"],
        ["--dataset", "mbpp", "--samples", "0"],
        ["--dataset", "mbpp", "--k", "1,x"],
        ["--dataset", "mbpp", "--k", "0"],
        ["--dataset", "mbpp", "--temperature", "-1"],
        ["--dataset", "mbpp", "--temperature", "nan"],
        ["--dataset", "mbpp", "--case-s", "0"],
        ["--dataset", "mbpp", "--limit", "-1"],
    ],
)
def test_options_that_make_no_sense_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        evaluate(*arguments)
    assert exit_.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_row_that_repeats_an_id_is_left_out(tmp_path):
    path = stored(tmp_path / "mbpp.jsonl", MBPP[0], MBPP[0], MBPP[1])
    problems, left_out = load(ProblemSource(dataset="mbpp", path=path), Reader())
    assert [problem.name for problem in problems] == ["11", "12"]
    assert left_out == {"row repeats an earlier id": 1}
