"""The test writer's node: what it learns, its state, its files, its place in `codezero status`.

A tiny random model neither solves a problem nor writes a case, so where something has to be learnt its solutions are
scripted, and so are the texts of its answers; their tokens are those that it sampled.
"""

import dataclasses
import io
import json
import re

import pytest
import torch

from codezero.cli import main
from codezero.config import Device, Dtype
from codezero.config.load import load_config
from codezero.errors import ConfigError, StateError
from codezero.harness import best, policy
from codezero.llm.sample import sample_groups
from codezero.runtime.console import Console
from codezero.train.checkpoint import CheckpointStore
from codezero.verifier import build, exercises, node, write
from codezero.verifier.trained import begun_in, writer_in
from codezero.verifier.write import write_cases
from tests.builders import save_tiny, written
from tests.tiny_node import lines, without_times

pytestmark = pytest.mark.usefixtures("restored_process")  # a node sets up its own

ROWS = [
    {
        "task_id": 601 + number,
        "text": f"Write a function f(x) that returns x + {number}.",
        "test_list": [f"assert f({x}) == {x + number}" for x in (1, 2, 3)],
        "test_setup_code": "",
        "code": f"def f(x):\n    return x + {number}",
    }
    for number in range(1, 5)
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    shape = {"intermediate_size": 64}  # rows that llama.cpp's Q8_0 has
    return save_tiny(tmp_path_factory.mktemp("model"), max_position_embeddings=16384, **shape)


@pytest.mark.parametrize("engine", ["vllm", "remote"])
def test_an_engine_for_one_role_is_told_and_another_one_takes_its_place(engine, tmp_path, settings, capsys):
    servers = ["rollout.servers=[server.yaml]"] if engine == "remote" else []
    assert verify(tmp_path, [*settings, f"rollout.engine={engine}", *servers], 1) == 0
    said = f"sampler: transformers, since rollout.engine={engine} takes the adapters of one role only"
    assert said in capsys.readouterr().out


def test_the_command_that_uses_it_names_a_folder_with_a_space(tmp_path, settings, capsys):
    assert verify(tmp_path / "my runs", settings, 1) == 0
    assert f" --writer '{tmp_path}/my runs/state' --temperature 0.8\n" in capsys.readouterr().out


@pytest.fixture
def settings(tmp_path, model):
    (tmp_path / "mbpp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return [
        *(f"model.name={model}", "model.device=cpu", "rollout.max_new_tokens=8", "verifier.num_candidates=2"),
        *("verifier.batch_size=2", "verifier.num_generations=3", "verifier.learning_rate=0.01", "verifier.lora_r=4"),
        *("tasks=mbpp", f"tasks.mbpp.path={tmp_path / 'mbpp.jsonl'}"),
    ]


class ScriptedSolver:
    """A solver that writes a right solution and a wrong one."""

    def solve(self, tasks, policy_version):
        def code(plus):
            return f"def f(x):\n    return x + {plus}"

        return tuple(written([code(number_of(one.question)), code(9)], one, policy_version) for one in tasks)

    def take_skipped(self):
        return {}

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def number_of(question):
    return int(question.split("x + ")[1].split(".")[0])


@pytest.fixture
def scripted(monkeypatch):
    """Writes good cases in one of three answers, wrong ones in one, none in one."""

    def written(model, subjects, num_answers, **more):
        answers = write_cases(model, subjects, num_answers, **more)
        for subject, some in zip(subjects, answers, strict=True):
            plus = number_of(subject.problem)
            texts = [(f"assert f(7) == {7 + wrong}", f"assert f(8) == {8 + wrong}") for wrong in (plus, plus + 1)]
            for number, cases in enumerate([*texts, ()]):
                some[number] = dataclasses.replace(some[number], cases=cases)
        return answers

    monkeypatch.setattr(write, "MAX_NEW_TOKENS", 8)
    monkeypatch.setattr(build, "make_solver", lambda *_: ScriptedSolver())
    monkeypatch.setattr(write, "write_cases", written)


def verify(folder, settings, batches):
    where = [f"state_dir={folder / 'state'}", f"tracking.log_dir={folder / 'logs'}"]
    return main(["verify", "--batches", str(batches), *settings, *where])


def case_reports(folder):
    return lines(folder / "logs" / "cases.jsonl")


def kept(folder):
    return CheckpointStore(folder / "state" / "verifier" / "checkpoints").load_latest()


@pytest.fixture
def stopped_at_once(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(node, "run_batch", stop)


@pytest.mark.usefixtures("stopped_at_once")
def test_a_proposer_can_follow_it_from_before_its_first_batch(tmp_path, settings, model):
    assert verify(tmp_path, settings, 1) == 0
    found = begun_in(tmp_path / "state")
    assert (found.model, found.train.lora_r, found.checkpoint) == (model, 4, "")
    with pytest.raises(StateError, match="holds no checkpoint yet: wait until the `codezero verify` there has done"):
        writer_in(tmp_path / "state")


@pytest.mark.usefixtures("stopped_at_once")
@pytest.mark.parametrize("method", ["lora", "full"])
def test_a_method_that_it_does_not_use_is_told(method, tmp_path, settings, capsys):
    assert verify(tmp_path, [*settings, f"train.method={method}"], 1) == 0
    said = "a test writer trains adapters: train.method=full has no effect on it\n"
    assert (said in capsys.readouterr().out) is (method == "full")


@pytest.mark.slow
def test_it_learns_from_its_answers_and_reports_them_beside_the_base_rate(tmp_path, settings, scripted, capsys):
    assert verify(tmp_path, settings, 2) == 0
    for number, report in zip((1, 2), case_reports(tmp_path), strict=True):
        right = report["candidates_right"]
        assert (report["batch"], report["num_groups"], report["num_answers"], report["num_masked"]) == (number, 2, 6, 0)
        assert (report["valid"], report["right"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
        assert report["reward_mean"] == pytest.approx(1 / 3)
        assert report["reward_approving"] == pytest.approx(0.5 + 0.5 * right)
        assert (report["policy_version"], report["skipped"]) == (number, None)
        assert list(report["seconds"]) == ["draw", "solve", "score", "cases", "try", "learn"]
    weights = kept(tmp_path).learner["weights"]
    assert all("lora" in name for name in weights)
    assert any(weight.any() for name, weight in weights.items() if "lora_B" in name)  # they begin as 0
    shown = capsys.readouterr().out
    assert "batch 2 | answers 6 on 2 | valid 33% diagnosis 33%" in shown
    assert "done: 2 batches in " in shown
    assert "12 answers of test cases, 33% valid, 33% with the right diagnosis" in shown


@pytest.mark.slow
def test_a_restarted_test_writer_goes_on_as_if_it_had_never_stopped(tmp_path, settings, scripted):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    verify(whole, settings, 3)
    verify(parts, settings, 1)
    verify(parts, settings, 2)
    assert without_times(case_reports(parts)) == without_times(case_reports(whole)) != []
    one, other = kept(whole), kept(parts)
    assert one.round == other.round == 3
    assert all(torch.equal(weight, other.learner["weights"][name]) for name, weight in one.learner["weights"].items())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["transformers", "llama_cpp"])
def test_a_solver_learns_beside_it_with_adapters_of_its_own_and_both_go_on(
    engine, tmp_path, settings, model, monkeypatch, capsys, caplog
):
    if engine == "llama_cpp":
        pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    let_a_pair_learn(monkeypatch)
    settings = [*settings, "verifier.train_solver=true", "train.lora_learning_rate=0.01", "train.lora_r=2"]
    settings.append(f"rollout.engine={engine}")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert verify(whole, settings, 2) == 0
    shown = capsys.readouterr().out
    assert "solver 50% right of 4, then 50% of 4, loss " in shown
    assert f"codezero eval --dataset mbpp --checkpoint {whole / 'state' / 'verifier'}" in shown
    verify(parts, settings, 1)
    verify(parts, settings, 1)
    assert without_times(case_reports(parts)) == without_times(case_reports(whole))
    report = case_reports(whole)[-1]
    assert (report["solver"]["num_attempts"], report["solver"]["policy_version"]) == (4, 2)
    assert report["solver"]["num_second"] == 4
    assert 8 <= report["solver"]["num_tokens"] <= 8 * 8
    assert list(report["seconds"]) == ["draw", "solve", "score", "cases", "try", "again", "learn"]
    learner = kept(whole).learner
    assert any(weight.any() for name, weight in learner["weights"].items() if "lora_B.default" in name)
    solver = learner["solver"]["weights"]
    assert any(weight.any() for name, weight in solver.items() if "lora_B.solver" in name)
    assert "sampler and learner disagree" not in caplog.text
    assert all(torch.equal(weight, kept(parts).learner["solver"]["weights"][name]) for name, weight in solver.items())

    trained = policy.trained_in(whole / "state" / "verifier")
    loaded, _ = policy.load_policy(str(model), str(tmp_path), Device.cpu, Dtype.float32, 1, trained)
    found = dict(loaded.model.named_parameters())
    assert all(torch.equal(found[name.replace(".solver.", ".default.")], weight) for name, weight in solver.items())
    assert not (whole / "logs" / "verifier_probe.jsonl").exists()  # a short run is not measured
    assert verify(whole, [*settings, "verifier.train_solver=false"], 1) == 1
    assert "was made with verifier.train_solver=True, not False" in capsys.readouterr().err


def let_a_pair_learn(monkeypatch):
    """Has the first solution to each problem count as right, and good cases refuse all others."""
    monkeypatch.setattr(write, "MAX_NEW_TOKENS", 8)
    monkeypatch.setattr(write, "write_cases", refusing)
    monkeypatch.setattr(exercises, "proven", lambda _, group: [True, *[False] * (len(group.rollouts) - 1)])
    monkeypatch.setattr(exercises.prompt, "parse", lambda text: "def f(x):\n    return x + 9")


def refusing(model, subjects, num_answers, **more):
    """Good cases, which refuse every candidate, and some that are none."""
    answers = write_cases(model, subjects, num_answers, **more)
    for subject, some in zip(subjects, answers, strict=True):
        plus = number_of(subject.problem)
        some[0] = dataclasses.replace(some[0], cases=(f"assert f(7) == {7 + plus}", f"assert f(8) == {8 + plus}"))
    return answers


@pytest.mark.slow
def test_a_folder_without_a_trained_solver_has_none_to_evaluate(tmp_path, settings, scripted):
    verify(tmp_path, settings, 1)
    with pytest.raises(StateError, match="holds a test writer and no solver: use it with --best-of 8 --verify"):
        policy.trained_in(tmp_path / "state" / "verifier")


@pytest.mark.slow
def test_a_report_that_a_kill_lost_is_written_at_the_next_start(tmp_path, settings, scripted):
    verify(tmp_path, settings, 2)
    path = tmp_path / "logs" / "cases.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0] + '{"batch": 2, "num_')
    verify(tmp_path, settings, 1)
    assert [report["batch"] for report in case_reports(tmp_path)] == [1, 2, 3]


def test_candidates_are_those_of_the_untrained_model_whatever_has_been_learnt(tmp_path, settings):
    """Adapters that are not zero change what the model writes, but not in the node's own context for candidates."""
    config = load_config([*settings, f"state_dir={tmp_path}"])
    loaded = build.load(config, Console(io.StringIO()))
    task = build.make_tasks(config).draw(1)[0]

    def solved():
        solver = build.make_solver(config, loaded, lambda *_: None, sample_groups)
        return solver.solve([task], 0)[0].rollouts[0].tokens.completion_ids

    before = solved()
    for name, weight in loaded.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))
    assert solved() != before
    with build.solver_weights(config, loaded):
        assert solved() == before


@pytest.mark.slow
def test_another_model_or_rank_for_the_same_folder_is_refused(tmp_path, settings, scripted, capsys):
    verify(tmp_path, settings, 1)
    assert verify(tmp_path, [*settings, "verifier.lora_r=8"], 1) == 1
    assert "was made with verifier.lora_r=4, not 8: set verifier.lora_r=4" in capsys.readouterr().err
    other = save_tiny(tmp_path / "other", seed=1, max_position_embeddings=16384)
    assert verify(tmp_path, [*settings, f"model.name={other}"], 1) == 1
    assert "was made with model.name=" in capsys.readouterr().err


def test_a_model_whose_context_is_too_short_for_the_prompt_learns_nothing_and_goes_on(tmp_path, settings, scripted):
    short = save_tiny(tmp_path / "short", max_position_embeddings=512)
    assert verify(tmp_path, [*settings, f"model.name={short}"], 1) == 0
    (report,) = case_reports(tmp_path)
    assert (report["num_groups"], report["dropped"]) == (0, {"prompt_too_long": 2})
    assert (report["skipped"], report["valid"]) == ("no scored groups", None)


def test_a_swarm_is_refused_with_what_to_do(tmp_path, settings, capsys):
    assert verify(tmp_path, [*settings, "swarm=native"], 1) == 1
    assert "test cases are not sent to other nodes yet" in capsys.readouterr().err


def test_status_shows_it_beside_a_solver(tmp_path, settings, scripted, capsys):
    verify(tmp_path, settings, 1)
    capsys.readouterr()
    assert main(["status", str(tmp_path / "state")]) == 3  # it does not run any more
    shown = capsys.readouterr().out
    assert "verifier" in shown
    assert "Diagnosis" in shown
    assert "6 answers on 2 candidates" in shown
    assert main(["status", "--json", str(tmp_path / "state")]) == 3
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["role"], run["cases"][0]["num_answers"], run["status"]["policy_version"]) == ("verifier", 6, 1)


@pytest.mark.slow
def test_eval_has_cases_written_by_what_was_trained_and_solutions_by_the_solver(
    tmp_path, settings, scripted, model, monkeypatch
):
    verify(tmp_path, settings, 1)
    trained, writers = kept(tmp_path).learner["weights"], []
    monkeypatch.setattr(best, "write_cases", lambda writer, *_, **__: writers.append(writer) or [])
    command = ["eval", "--dataset", "mbpp", "--path", tmp_path / "mbpp.jsonl", "--split", "train", "--limit", 1]
    command += ["--model", model, "--device", "cpu", "--threads", 1, "--max-new-tokens", 4, "--temperature", 1]
    command += ["--best-of", 2, "--verify", "--writer", tmp_path / "state", "--out", tmp_path / "out"]
    assert main([str(word) for word in command]) == 0
    weights = dict(writers[0].model.named_parameters())
    assert all(torch.equal(weights[name], weight) for name, weight in trained.items())
    (asked,) = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("settings.json")]
    assert re.search("state/verifier round-00000001 [0-9a-f]{8}$", asked["writer"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("verifier.num_generations=1", "GRPO compares answers to one request"),
        ("verifier.batch_size=0", "use 1 or more"),
        ("verifier.temperature=0", "use a value from 0.01 to 100"),
        ("verifier.batches=-1", "use 0 or more"),
    ],
)
def test_impossible_settings_are_refused(setting, message):
    with pytest.raises(ConfigError, match=message):
        load_config([setting])
