"""The probes of a solver that learns beside a test writer: when, of which weights, and what a stop costs."""

import io
import json
import re
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from codezero.config.load import load_config
from codezero.evaluate.evaluator import proven
from codezero.harness import policy
from codezero.llm.sample import sample_groups
from codezero.observe.probes import learning
from codezero.policy.probing import build as probing_build
from codezero.policy.probing import probe as probe_module
from codezero.policy.probing.probe import Probe
from codezero.runtime.console import Console
from codezero.train.checkpoint import CheckpointStore
from codezero.train.method import SOLVER
from codezero.verifier import build, write
from tests.builders import assert_identical, save_tiny
from tests.strangers import Reader
from tests.tiny_node import lines
from tests.unit.observe.test_probes import passes
from tests.unit.policy.test_probe import PROBLEMS
from tests.unit.verifier.test_node import ROWS, case_reports, kept, let_a_pair_learn, verify

pytestmark = pytest.mark.usefixtures("restored_process")


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "mbpp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    model = save_tiny(tmp_path / "model", max_position_embeddings=16384)
    return [
        *(f"model.name={model}", "model.device=cpu", "model.threads=1", "rollout.max_new_tokens=8", "train.lora_r=2"),
        *("verifier.batch_size=2", "verifier.num_generations=2", "verifier.num_candidates=2", "verifier.lora_r=4"),
        *("tasks=mbpp", f"tasks.mbpp.path={tmp_path / 'mbpp.jsonl'}", "verifier.train_solver=true"),
    ]


def probes(folder):
    return lines(folder / "logs" / "verifier_probe.jsonl")


def due(monkeypatch, *turns):
    left = iter(turns)
    monkeypatch.setattr(Probe, "is_due", property(lambda self: next(left)))


@pytest.mark.parametrize(
    ("changes", "is_measured"),
    [
        ([], True),
        (["verifier.batches=20"], True),
        (["verifier.batches=19"], False),
        (["probe.share=0"], False),
        (["verifier.train_solver=false"], False),
    ],
)
def test_a_solver_that_is_trained_in_a_long_run_is_measured(changes, is_measured, tmp_path):
    config = load_config(["verifier.train_solver=true", f"tracking.log_dir={tmp_path}", *changes])
    weights = SimpleNamespace(dtype=torch.float32, device=torch.device("cpu"))
    model = SimpleNamespace(name="m", model=weights, encode_chat=lambda messages: [1])
    assert (build.make_solver_probe(config, model, Reader(), lambda *_: None, sample_groups) is not None) is is_measured


def test_the_solver_is_measured_whatever_the_test_writer_has_learnt(tmp_path, settings, monkeypatch):
    written = []
    monkeypatch.setattr(probing_build, "load_held_out", lambda: PROBLEMS)
    monkeypatch.setattr(
        probe_module, "proven", lambda _, group: written.append([one.text for one in group.rollouts]) or []
    )
    config = load_config([*settings, f"state_dir={tmp_path}", f"tracking.log_dir={tmp_path}"])
    model = build.load(config, Console(io.StringIO()))

    def measured():
        written.clear()
        build.make_solver_probe(config, model, Reader(), lambda *_: None, sample_groups).take(1, 1)
        return list(written)

    def learn(adapters):
        for name, weight in model.model.named_parameters():
            if f"lora_B.{adapters}" in name:
                torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))

    before = measured()
    learn("default")
    assert measured() == before
    learn(SOLVER)
    assert measured() != before
    assert model.model.active_adapter == "default"  # a batch goes on with the test writer's


@pytest.mark.slow
def test_a_pair_learns_the_same_with_probes_and_whenever_it_was_stopped(tmp_path, settings, monkeypatch):
    let_a_pair_learn(monkeypatch)
    monkeypatch.setattr(probing_build, "LEAST_ROUNDS", 1)
    whole, parts, without = (tmp_path / name for name in ("whole", "parts", "without"))
    due(monkeypatch, *[True, True, False] * 2)  # one probe before each batch
    assert verify(whole, settings, 2) == 0
    assert verify(without, [*settings, "probe.share=0"], 2) == 0
    assert [(one["round"], list(one["right"])) for one in probes(whole)] == [
        (0, ["mbpp/511", "mbpp/512", "mbpp/513", "mbpp/514"]),
        (1, ["mbpp/515", "mbpp/516", "mbpp/517", "mbpp/518"]),
    ]
    assert not (whole / "logs" / "probe.jsonl").exists()
    assert [one["policy_version"] for one in probes(whole)] == [0, 1]
    assert case_reports(whole)[-1]["solver"]["policy_version"] == 2
    assert not (without / "logs" / "verifier_probe.jsonl").exists()

    calls = count(1)

    def proven_until_a_stop(*given):
        if next(calls) == 10:  # of 8 for each probe: the second one
            raise KeyboardInterrupt
        return proven(*given)

    monkeypatch.setattr(probe_module, "proven", proven_until_a_stop)
    due(monkeypatch, True, True, False, True, True)
    assert verify(parts, settings, 2) == 0
    assert (kept(parts).round, len(probes(parts))) == (1, 1)
    due(monkeypatch, True, True, False)
    assert verify(parts, settings, 1) == 0
    assert [list(one["right"]) for one in probes(parts)] == [list(one["right"]) for one in probes(whole)]
    for other in (parts, without):
        assert kept(other).round == kept(whole).round == 2
        assert_identical(kept(other).learner, kept(whole).learner)
        for part in ("tasks", "solver", "writer"):
            assert_identical(kept(other).node[part], kept(whole).node[part])


@pytest.mark.slow
def test_a_solver_that_gets_worse_is_warned_of_and_its_best_weights_are_kept(tmp_path, settings, monkeypatch):
    monkeypatch.setattr(write, "MAX_NEW_TOKENS", 8)
    monkeypatch.setattr(probing_build, "LEAST_ROUNDS", 1)
    told = [passes(0.25), passes(0.25, 1.0), passes(0.25, 1.0, 0.3, 0.3, 0.3)]
    due(monkeypatch, *[True, True, False] * 3)
    monkeypatch.setattr(Probe, "take", lambda self, *_: setattr(self, "learning", learning(told.pop(0))) or True)
    assert verify(tmp_path, settings, 3) == 0
    folder = tmp_path / "state" / "verifier"
    assert kept(tmp_path).round == 3
    assert CheckpointStore(folder / "checkpoints").load_best().round == 1  # that which was measured as the best
    trained = policy.trained_in(folder / "best")
    assert (trained.is_best, trained.beside_writer) == (True, True)
    log = (tmp_path / "logs" / "verifier.log").read_text()
    assert re.search(rf"the solver has got worse beyond chance\. .* --checkpoint {folder}/best measures them", log)
