"""Probes: what is solved when, what is noted, and what a stop or a kill costs."""

import dataclasses
import io
from contextlib import ExitStack, nullcontext
from itertools import cycle

import pytest

from codezero.build import begin
from codezero.config.load import load_config
from codezero.errors import ConfigError
from codezero.evaluate.gain import Direction
from codezero.evaluate.reading import AttemptReader
from codezero.node import Node
from codezero.observe.probes import NODE, learning
from codezero.observe.roles import SOLVER
from codezero.policy.probing import build
from codezero.policy.probing import probe as probe_module
from codezero.policy.probing.probe import SAMPLES, START_SAMPLES, Probe
from codezero.publish.tokens import HubTokens
from codezero.runtime.console import Console
from codezero.tasks.held_out import load_held_out
from codezero.train.checkpoint import CheckpointStore
from tests.builders import assert_identical, group, rollout, save_tiny, task
from tests.strangers import Reader
from tests.tiny_node import lines
from tests.unit.observe.test_probes import passes

RIGHT, WRONG, OPEN = (
    f"```python\n{head}def f(x):\n    return {body}\n```"
    for head, body in (("", "x + 1"), ("", "x"), ("import numpy\n", "numpy.add(x, 1)"))
)
PROBLEMS = {f"p{number}": task(f"problem {number}") for number in range(10)}


class Measured:
    """A policy that answers what it is told, and a clock on which a call of it takes a second."""

    def __init__(self, folder, after=0, rows=4, problems=PROBLEMS):
        self.now_s, self.answers, self.asked = 0.0, {}, []
        self.probe = Probe(
            problems,
            "kind",
            self.solver,
            AttemptReader(Reader(), dry_run=True, fatal_rules=True, show=False),
            folder,
            NODE,
            share=0.1,
            rows=rows,
            turn=nullcontext,
            progress=lambda *_: None,
            clock=lambda: self.now_s,
        )
        self.probe.resume(after)

    def solver(self, num_samples, temperature, number):
        def solve(tasks, policy_version):
            self.asked.append((num_samples, temperature, [one.question for one in tasks]))
            self.now_s += 1
            texts = [self.answers.get((one.question, temperature), WRONG) for one in tasks]
            return [
                group([rollout(text=text)] * num_samples, of=one)
                for one, text in zip(tasks, texts, strict=True)
                if text is not None
            ]

        solver = type("Solver", (), {})()
        solver.solve = solve
        return solver

    def take_all_due(self, round_number):
        while self.probe.is_due:
            self.probe.take(round_number, round_number)
        return self.probe.learning


@pytest.fixture
def node(tmp_path):
    return Measured(tmp_path)


def test_the_start_is_measured_whole_before_the_first_round(node, tmp_path):
    node.answers = {("problem 3", 0.0): RIGHT, ("problem 3", 1.0): RIGHT, ("problem 4", 1.0): RIGHT}
    told = node.take_all_due(0)
    assert [len(line["right"]) for line in lines(tmp_path / "probe.jsonl")] == [4, 4, 2]
    assert node.asked[:3] == [  # never more solutions at once than the memory plan counts with
        (1, 0.0, ["problem 0", "problem 1", "problem 2", "problem 3"]),
        (START_SAMPLES, 1.0, ["problem 0"]),
        (START_SAMPLES, 1.0, ["problem 1"]),
    ]
    assert lines(tmp_path / "probe.jsonl")[0]["right"] == {"p0": 0, "p1": 0, "p2": 0, "p3": START_SAMPLES}
    assert lines(tmp_path / "probe.jsonl")[0]["greedy"] == {"p0": False, "p1": False, "p2": False, "p3": True}
    assert (told.direction, told.passes[0].sampled, told.passes[0].greedy) == (Direction.UNKNOWN, 0.2, 0.1)
    assert told.text == ("Too early to tell: 20.0 % right at the start (greedy 10.0 %), 0 of 10 problems tried again.")


def test_a_slow_machine_begins_its_rounds_and_measures_the_rest_of_the_start_between_them(node, monkeypatch, tmp_path):
    monkeypatch.setattr(probe_module, "START_S", 8.0)
    node.take_all_due(0)
    assert node.now_s == 5.0  # another probe would take as long again
    node.now_s = 25.0  # a tenth of it is the share, besides what the start may take
    node.take_all_due(3)
    assert [line["round"] for line in lines(tmp_path / "probe.jsonl")] == [0, 3, 3]
    assert node.asked[-1] == (SAMPLES, 1.0, ["problem 8", "problem 9"])


def test_probes_of_large_rounds_are_small_and_the_last_of_a_pass_is_timed_by_what_it_has_left(tmp_path, monkeypatch):
    problems = {f"p{number}": task(f"problem {number}") for number in range(20)}
    node = Measured(tmp_path, rows=64, problems=problems)
    monkeypatch.setattr(probe_module, "START_S", 3.0)  # two calls for 16 problems, so less than one more for the last 4
    node.take_all_due(0)
    assert [len(one.right) for one in node.probe.reports] == [16, 4]


def test_later_probes_take_their_share_of_the_time_and_no_more(node, tmp_path):
    node.take_all_due(0)
    assert node.now_s == 13  # calls
    for number in range(1, 400):
        node.now_s += 1
        node.take_all_due(number)
        spent = sum(line["seconds"] for line in lines(tmp_path / "probe.jsonl")[3:])
        assert spent <= 0.1 * (node.now_s - 13) + 1  # the last of a pass has fewer problems, and takes longer for each
    assert spent > 0.09 * (node.now_s - 13)
    assert 13 + spent == lines(tmp_path / "probe.jsonl")[-1]["spent_s"]


def test_a_long_first_pass_does_not_put_off_the_second(node, tmp_path):
    node.take_all_due(0)
    node.now_s = 13 + 60.0  # a tenth of what came after it is enough for a probe, a tenth of all is long spent
    node.take_all_due(5)
    assert [line["round"] for line in lines(tmp_path / "probe.jsonl")] == [0, 0, 0, 5]


def test_a_stopped_node_goes_on_within_a_pass_and_remembers_its_time(node, tmp_path):
    node.take_all_due(0)
    node.now_s = 13 + 60.0
    node.take_all_due(7)
    again = Measured(tmp_path, after=7)
    assert not again.probe.is_due  # since the first pass 3 of 63 seconds are spent
    again.now_s = 30.0
    again.take_all_due(8)
    assert [line["round"] for line in lines(tmp_path / "probe.jsonl")] == [0, 0, 0, 7, 8, 8]
    assert list(lines(tmp_path / "probe.jsonl")[4]["right"]) == ["p4", "p5", "p6", "p7"]


def test_what_was_measured_of_rounds_that_are_played_again_is_forgotten(node, tmp_path):
    node.take_all_due(0)
    node.now_s = 1000.0
    node.take_all_due(7)
    assert lines(tmp_path / "probe.jsonl")[-1]["round"] == 7
    Measured(tmp_path, after=6)
    assert {line["round"] for line in lines(tmp_path / "probe.jsonl")} == {0}


def test_a_kill_before_the_first_round_loses_one_probe_at_most(node, tmp_path):
    node.probe.take(0, 0)
    with (tmp_path / "probe.jsonl").open("a") as file:
        file.write('{"round": 0, "pol')
    again = Measured(tmp_path)
    again.take_all_due(0)
    assert [next(iter(line["right"])) for line in lines(tmp_path / "probe.jsonl")] == ["p0", "p4", "p8"]
    assert not (tmp_path / "probe.1.jsonl").exists()  # nothing would be lost


def test_another_life_begins_with_the_start_alone_and_leaves_the_curve_of_the_last_one(node, tmp_path):
    node.take_all_due(0)
    node.now_s = 1000.0
    node.take_all_due(7)
    again = Measured(tmp_path)
    assert {line["round"] for line in lines(tmp_path / "probe.jsonl")} == {0}
    assert again.probe.reports[-1].round == 0
    assert '"round": 7' in (tmp_path / "probe.1.jsonl").read_text()


def test_a_start_that_was_measured_in_another_way_does_not_count(node, tmp_path):
    node.take_all_due(0)
    path = tmp_path / "probe.jsonl"
    path.write_text(path.read_text().replace('"kind": "kind"', '"kind": "other"'))
    again = Measured(tmp_path)
    assert again.probe.reports == []
    assert again.probe.is_due


def test_what_nobody_can_tell_counts_as_wrong_and_is_counted(node, tmp_path):
    node.answers = {("problem 0", 1.0): OPEN, ("problem 1", 0.0): "no code", ("problem 2", 0.0): None}
    node.probe.take(0, 0)
    (line,) = lines(tmp_path / "probe.jsonl")
    assert (line["unknown"], sum(line["right"].values()), sum(line["greedy"].values())) == (START_SAMPLES, 0, 0)


def test_the_held_out_problems_hide_tests_and_may_not_be_trained_on():
    problems = load_held_out()
    assert len(problems) > 80
    assert all(511 <= int(name.removeprefix("mbpp/")) <= 600 for name in problems)
    for one in problems.values():
        assert one.question.count("\nassert") < one.tests.count("assert")
    with pytest.raises(ConfigError, match=r"tasks.mbpp.split=validation .* use split train, or probe.share=0"):
        load_config(["tasks=mbpp", "tasks.mbpp.split=validation"])
    load_config(["tasks=mbpp", "tasks.mbpp.split=validation", "probe.share=0"])


def played(folder, model, *settings):
    """The newest checkpoint of a node that has played three rounds."""
    config = load_config(
        [
            *("preset=local", "rounds=3", f"model.name={model}", f"evaluator.model={model}", "model.device=cpu"),
            *("model.threads=1", "train.method=full", "train.learning_rate=1e-3", "rollout.num_generations=2"),
            *("rollout.max_new_tokens=12", f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs", *settings),
        ]
    )
    with ExitStack() as stack:
        node = Node(config, HubTokens(), None, begin(config, SOLVER, Console(io.StringIO()), stack))
        node.run()
        node.finish()
    return CheckpointStore(folder / "state" / "checkpoints").load_latest()


def test_a_kill_between_the_best_pass_and_the_next_checkpoint_does_not_lose_it(tmp_path, monkeypatch):
    reports = [dataclasses.replace(one, round=at) for at, one in zip((0, 2), passes(0.25, 1.0), strict=True)]
    monkeypatch.setattr(Probe, "is_due", False)
    monkeypatch.setattr(Probe, "resume", lambda self, _: setattr(self, "learning", learning(reports)))
    monkeypatch.setattr(build, "LEAST_ROUNDS", 1)
    model, kept = save_tiny(tmp_path / "model"), []
    for _ in range(3):
        played(tmp_path, model, "rounds=1")
        kept.append(CheckpointStore(tmp_path / "state" / "checkpoints").load_best().round)
    assert kept == [1, 2, 2]  # the pass after round 2 has its checkpoint then


def test_a_node_that_measures_itself_learns_bit_for_bit_what_it_would_learn_otherwise(tmp_path, monkeypatch):
    turns = cycle([True, True, False])
    monkeypatch.setattr(Probe, "is_due", property(lambda self: next(turns)))  # one probe before each round
    monkeypatch.setattr(build, "LEAST_ROUNDS", 1)
    model = save_tiny(tmp_path / "model")
    with_probes = played(tmp_path / "a", model, "probe.share=0.05")
    without = played(tmp_path / "b", model, "probe.share=0")
    assert [line["round"] for line in lines(tmp_path / "a" / "logs" / "probe.jsonl")] == [0, 1, 2]
    assert not (tmp_path / "b" / "logs" / "probe.jsonl").exists()
    assert with_probes.round == without.round == 3
    assert_identical(with_probes.learner, without.learner)
    for part in ("tasks", "solver", "torch_rng"):
        assert_identical(with_probes.node[part], without.node[part])
