import json
from subprocess import CompletedProcess
from types import SimpleNamespace
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks import harness, learning, learnt, training
from benchmarks.learning import RUNS, main
from benchmarks.splits import Split
from codezero import cli
from codezero.config.load import load_config
from codezero.observe.groups_file import SeenGroup, SeenRollout, SeenRound, SeenTask
from tests.builders import save_tiny
from tests.unit.benchmarks.builders import result
from tests.unit.observe.test_probes import probe, write


def mbpp_file(folder):
    """A file with three problems to train on, and two of each other split."""
    path = folder / "mbpp.jsonl"
    rows = [
        {
            "task_id": number,
            "text": f"Write a function to add {number} to a number.",
            "test_list": [f"assert add(1) == {number + 1}", f"assert add(2) == {number + 2}"],
            "test_setup_code": "",
            "code": f"def add(x):\n    return x + {number}",
        }
        for number in (11, 12, 511, 512, 601, 602, 603)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def evaluated_here(monkeypatch, restored_process):
    """Evaluations in this process: those in others are tested in tests/unit/harness/test_eval.py."""

    def run(command, cwd, check):
        return CompletedProcess(command, cli.main(command[3:]))

    monkeypatch.setattr(learning, "subprocess", SimpleNamespace(run=run))


@pytest.mark.slow
@pytest.mark.usefixtures("evaluated_here")
def test_a_quick_run_is_evaluated_trained_in_two_calls_evaluated_again_and_shown(tmp_path, capfd):
    def stage(*words):
        main([*words, "--quick", "--state", str(tmp_path), "--mbpp", str(mbpp), "--model", model])
        return capfd.readouterr().out

    mbpp, model = mbpp_file(tmp_path), save_tiny(tmp_path / "model")
    results = tmp_path / "quick" / "results"
    stage("before", "--split", "report")
    stage("train", "informative", "--rounds", "1")
    assert list(harness.results("learning", results)["informative-train"].counts) == ["rounds 1-1"]
    assert "round 1 |" not in stage("train", "informative")  # the second call goes on
    stage("after", "informative")
    found = harness.results("learning", results)
    trained, after = found["informative-train"], found["informative-newest"]
    assert [block["round"] for block in trained.counts.values()] == [[1], [2]]
    assert len(trained.sittings) == 2
    assert after.settings["round"] == 2
    assert after.counts["sampled"].keys() == {"samples", "right", "cut_off"}
    assert after.counts["sampled"]["right"].keys() == {"11", "12"}
    assert after.counts["attempts"].keys() == {"1-1", "2-2"}
    assert after.counts["attempts"]["1-1"][0] == 4
    assert "| informative, newest | 8 |" in stage("report")
    assert ElementTree.parse(results / "learning" / "informative.svg").getroot().tag.endswith("svg")
    assert "done already" in stage("train", "informative")


@pytest.mark.slow
@pytest.mark.usefixtures("evaluated_here")
def test_two_nodes_are_trained_and_the_first_is_evaluated(tmp_path):
    def stage(*words):
        main([*words, "--quick", "--state", str(tmp_path), "--mbpp", str(mbpp), "--model", model])

    mbpp, model = mbpp_file(tmp_path), save_tiny(tmp_path / "model")
    stage("train", "shared")
    stage("after", "shared")
    found = harness.results("learning", tmp_path / "quick" / "results")
    assert [block["round"] for block in found["shared-train"].counts.values()] == [[1], [2]]
    assert all(block["num_external_groups"][0] >= 0 for block in found["shared-train"].counts.values())
    assert found["shared-newest"].settings["round"] == 2
    assert training.saved(tmp_path / "quick" / "learning" / "shared" / "node-2") == 2


@pytest.mark.parametrize("name", RUNS)
def test_settings_of_every_run_are_those_of_a_node_and_train_on_mbpp_alone(name):
    _, run = learning.run_of(name, learning.parse(["train", name]))
    config = load_config([f"{key}={value}" for key, value in run.settings.items()])
    assert (config.tasks.mbpp.split, config.tasks.mbpp.weight) == ("train", 1)
    assert config.tasks.builtin.weight == config.tasks.code_contests.weight == 0
    assert (config.swarm.num_external > 0) is (run.nodes > 1)
    assert (config.probe.share > 0) is (run.split is Split.report)
    assert run.rollouts % learning.BLOCK == 0
    assert learning.LEARNING.keys() <= run.settings.keys()  # else a change of defaults changes the run


def test_runs_that_are_compared_have_equal_rollouts():
    compared = {name: RUNS[name].rollouts for pair in learnt.PAIRS for name in pair}
    assert compared.pop("double") == 2 * compared["alone"]
    assert len(set(compared.values())) == 1


def test_an_unknown_run_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["train", "fast"])
    assert "fast is no run of train: choose from defaults, uniform, earlier" in capsys.readouterr().err


def test_what_is_not_trained_yet_says_how_to(tmp_path):
    with pytest.raises(SystemExit, match=r"run `python -m benchmarks\.learning train uniform` first"):
        main(["after", "uniform", "--state", str(tmp_path), "--results", str(tmp_path)])


@pytest.mark.parametrize(("rounds", "message"), [(None, "lacks rounds"), (2, "lacks rounds"), (4, "evaluates")])
def test_a_checkpoint_is_evaluated_once_the_result_of_training_has_its_rounds(tmp_path, monkeypatch, rounds, message):
    """Else its rollouts and hours would be told as fewer."""

    def run(arm, do, options):
        raise SystemExit("evaluates")

    monkeypatch.setattr(harness, "run", run)
    checkpoint = tmp_path / "learning" / "uniform-seed1" / "state" / "checkpoints" / "round-00000004"
    checkpoint.mkdir(parents=True)
    (checkpoint / "learner.pt").touch()
    (checkpoint / "manifest.json").write_text('{"round": 4}')
    if rounds is not None:
        block = {"round": list(range(1, rounds + 1)), "seconds": {"solve": [1.0] * rounds}}
        trained = result({f"rounds 1-{rounds}": block})
        harness.write(tmp_path / "learning" / "uniform-seed1-train.json", harness.dumps(trained))
    stage = ["after", "uniform", "--seed", "1", "--state", str(tmp_path), "--results", str(tmp_path)]
    with pytest.raises(SystemExit, match=message):
        main([*stage, "--mbpp", str(mbpp_file(tmp_path))])


def test_a_node_that_is_trained_already_is_not_trained_again(tmp_path):
    """Its logs would be read as those of another training."""
    (tmp_path / "learning" / "uniform" / "state" / "checkpoints" / "round-00000004").mkdir(parents=True)
    with pytest.raises(SystemExit, match="learning/uniform is trained already: move it away to train it again"):
        main(["train", "uniform", "--again", "--state", str(tmp_path), "--results", str(tmp_path)])


def test_runs_of_all_seeds_have_one_start(tmp_path, monkeypatch):
    arms = []
    monkeypatch.setattr(harness, "run", lambda arm, do, options: arms.append(arm))
    for seed in ("0", "1"):
        main(["before", "--seed", seed, "--results", str(tmp_path), "--mbpp", str(mbpp_file(tmp_path))])
    assert arms[:2] == arms[2:]


def evaluation(right, samples, **settings):
    counts = {
        "greedy": {"samples": 1, "right": {name: int(n > samples / 2) for name, n in right.items()}, "cut_off": 0},
        "sampled": {"samples": samples, "right": right, "cut_off": 0},
        "probe": {"passes": [], "text": ""},
        "attempts": {"1-2": [4, 1, 1.5, 2, 1, 1]},
    }
    return result(counts, settings)


def measured(split="report"):
    block = {key: [0.5, 0.5] for key in training.KEPT} | {"round": [1, 2], "seconds": {"solve": [3000, 600]}}
    return {
        "a-newest": evaluation({"11": 4, "12": 2, "13": 0, "14": 3}, 4, split=split, round=2),
        "a-train": result({"rounds 1-2": block}, {"rollouts a round": 32}),
        "start-report": evaluation({"11": 1, "12": 2, "13": 0, "14": 1}, 4, split="report"),
    }


def test_gains_are_paired_over_problems_and_held_against_their_targets():
    row = learnt.table(measured()).splitlines()[-1]
    assert row.startswith("| a, newest | 64 | 1.0 (0.0) | 25.0 % to 56.2 %: +31.2 points [+0.0, +62.5]")
    assert "gain of pass@1 at T=1 at least 5 points: met" in row
    assert "lower end of its interval at least 0 points: **missed**" in row
    assert "0.0 % to 50.0 %: +50.0 points" in row
    assert "75.0 % to 75.0 %: +0.0 points" in row


def test_more_solutions_to_each_problem_give_pass_at_k():
    results = measured()
    results["start-report-of4"] = results["start-report"]
    results["a-newest-of4"] = results["a-newest"]
    row = learnt.table(results).splitlines()[-1]
    assert row.startswith("| a-newest | 4 | 25.0 % to 56.2 %: +31.2 points [+0.0, +62.5] | 75.0 % to 75.0 %")


def test_the_gain_without_problems_like_one_in_training_is_that_on_the_others():
    results = measured()
    assert learnt.unlike_training(results, {"11"}) == ""
    results |= {f"{name}-newest": results["a-newest"] for name in learnt.TOGETHER}
    assert learnt.unlike_training(results, {"11", "600"}).endswith(
        "without 1 problems like one in training, at T=1: 25.0 % to 41.7 %: +16.7 points [+0.0, +50.0]"
    )


def test_a_run_is_compared_with_the_start_on_its_own_problems():
    assert learnt.table(measured(split="tune")) == ""


@pytest.mark.parametrize("other", [{"model": "1.5B"}, {"max_new_tokens": 128}, {"samples": 8}, {"problems": "hub"}])
def test_a_run_is_not_compared_with_a_start_that_was_asked_for_something_else(other):
    results = measured()
    results |= {f"{name}-newest": results["a-newest"] for name in learnt.TOGETHER}
    assert "mean of" in learnt.table(results)
    results["start-report"].settings.update(other)
    assert learnt.table(results) == ""
    del results["start-report"]
    assert learnt.table(results) == ""


def test_runs_that_choose_settings_are_compared_by_the_hour():
    results = measured(split="tune")
    results["start-tune"] = results.pop("start-report")
    row = learnt.table(results).splitlines()[-1]
    assert row.endswith("| +31.2 [+0.0, +62.5] |")
    assert "at least" not in row


def test_runs_that_choose_settings_are_compared_with_the_defaults():
    results = measured(split="tune")
    results["start-tune"] = results.pop("start-report")
    results |= {arm.replace("a-", "as-defaults-"): found for arm, found in results.items() if arm.startswith("a-")}
    results["as-defaults-newest"] = evaluation(dict.fromkeys(("11", "12", "13", "14"), 2), 4, split="tune", round=2)
    row = learnt.table(results).splitlines()[-1]
    assert row.startswith("| a against as-defaults |  |  | 50.0 % to 56.2 %: +6.2 points")


def test_hours_and_rollouts_are_those_up_to_the_checkpoint():
    results = measured()
    assert learnt.trained(results["a-train"], last_round=1) == (1, pytest.approx(3000 / 3600))
    results["a-train"].sittings.append(SimpleNamespace(cpu_s=7200.0))
    assert learnt.table(results).splitlines()[-1].startswith("| a, newest | 64 | 1.0 (2.0) |")
    results["a-newest"].settings["round"] = 1
    assert learnt.table(results).splitlines()[-1].startswith("| a, newest | 32 | 0.8 (1.7) |")


def test_own_attempts_are_executed_once_and_compared_with_what_was_predicted(tmp_path):
    def rollout(text, p_correct, reward):
        return SeenRollout(
            text=f"```python\n{text}\n```",
            finish="stop",
            outcome="judged",
            p_correct=p_correct,
            reward=reward,
            parts={},
            rules={},
            reasons={},
            cases=[],
        )

    right, wrong = "def f(x):\n    return x + 1", "def f(x):\n    return x"
    tried = [rollout(right, 0.99, 1.0), rollout(wrong, 0.75, 0.5), rollout(wrong, 0.01, 0.0), rollout(right, 0.5, None)]
    group = SeenGroup(
        peer_id="me",
        model_id="tiny",
        external=False,
        trained=True,
        task=SeenTask(id="1", origin="mbpp", difficulty=None, question="", tests="assert f(1) == 2"),
        rollouts=tried,
    )
    (tmp_path / "logs").mkdir()
    peers = msgspec.structs.replace(group, peer_id="other", external=True)
    lines = [msgspec.json.encode(SeenRound(round=number, groups=[group, peers])) for number in (1, 2, 3, 3)]
    torn = lines[0][:40]  # as a kill leaves it, and the next start puts a line after it
    (tmp_path / "logs" / "groups.jsonl").write_bytes(b"\n".join([lines[0], torn, *lines[1:], torn]))
    found = training.attempts(tmp_path, [(1, 2), (3, 4), (5, 6)])
    assert found == {"1-2": [8, 2, 3.5, 4, 2, 2, 3, 1], "3-4": [4, 1, 1.75, 2, 1, 1, 0, 0]}

    (tmp_path / "logs" / "groups.jsonl").write_bytes(lines[2] + b"\n")  # what came before was rotated away
    assert training.attempts(tmp_path, [(1, 2), (3, 4)]) == {"3-4": [4, 1, 1.75, 2, 1, 1]}


def test_rounds_that_a_kill_has_cost_count_as_they_are_played_again(tmp_path, monkeypatch):
    def write_reports(*rewards):
        reports = [{**dict.fromkeys(training.KEPT), "reward_mean": reward, "seconds": {}} for reward in rewards]
        harness.write(tmp_path / "logs" / "rounds.jsonl", "".join(json.dumps(one) + "\n" for one in reports))

    class Again:
        def poll(self):
            write_reports(0.1, 0.7, 0.8)

    write_reports(0.1, 0.2, 0.3)
    (tmp_path / "state" / "checkpoints" / "round-00000001").mkdir(parents=True)
    monkeypatch.setattr(training, "subprocess", SimpleNamespace(Popen=lambda *_, **__: Again(), PIPE=None))
    monkeypatch.setattr(training, "LOOK_S", 0)
    assert training.Node({}, tmp_path, 3).block("rounds 1-3")["reward_mean"] == [0.1, 0.7, 0.8]


def test_of_probes_a_line_that_a_kill_has_torn_is_left_out(tmp_path):
    reports = [probe(number, {"a": 2, "b": number}) for number in (0, 1)]
    write(tmp_path / "logs", reports)
    with (tmp_path / "logs" / "probe.jsonl").open("a") as file:
        file.write('{"round": 2, "policy_ver')
    assert training.probed(tmp_path)["passes"] == [[0, 0.5, 0.5], [1, 0.75, 0.5]]


def test_splits_of_runs_are_never_trained_on():
    assert {run.split for run in RUNS.values()} <= {Split.report, Split.tune}
