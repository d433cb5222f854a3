"""A proposer with a test writer: three sets of weights on one model, going on after a stop, and what is refused.

A tiny random model writes neither problems nor code, so both are made of what it is asked or has sampled.
"""

import dataclasses
import hashlib
import io
import json
import os

import pytest
import torch

from codezero.cli import main
from codezero.config import Device, Dtype
from codezero.config.load import load_config
from codezero.errors import ConfigError, StateError
from codezero.harness.policy import load_policy
from codezero.llm.load import load_model
from codezero.policy.writer import train_config
from codezero.prompts import solver as prompt
from codezero.proposer import build
from codezero.proposer.models import LocalModel, Written
from codezero.proposer.node import run_proposer
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.train.checkpoint import CheckpointStore, trainable_weights
from codezero.train.method import active_lora, apply_lora
from codezero.verifier import write
from codezero.verifier.trained import writer_in
from codezero.verifier.write import write_cases
from tests.builders import save_tiny

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("model"), max_position_embeddings=16384)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """The state folder of a test writer whose adapters are not zero."""
    made = tmp_path_factory.mktemp("writer")
    own = made / "verifier"
    config = load_config(["verifier.lora_r=4"]).verifier
    adapted = apply_lora(load_model("m", model, CPU, torch.float32).model, train_config(config), seed=0)
    weights = trainable_weights(adapted)
    for name, weight in weights.items():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))
    CheckpointStore(own / "checkpoints").save(1, 1, {"weights": weights, "engine": {}}, {})
    state.bind_settings(own, {"model.name": model, "verifier.lora_r": 4, "verifier.train_solver": False})
    return made


@pytest.fixture
def settings(model, folder):
    return [
        *(f"model.name={model}", "model.device=cpu", "model.dtype=float32", f"proposer.writer={folder}"),
        *("proposer.batch_size=2", "proposer.max_new_tokens=8", "rollout.max_new_tokens=8"),
        "verifier.num_candidates=3",
    ]


@pytest.fixture
def scripted(monkeypatch):
    """Problems of what is asked, which the dry run's reference solves; attempts and cases of what was sampled."""

    def answer(self, chats, prefixes):
        return [Written(problem(int(hashlib.sha256(repr(chat).encode()).hexdigest()[:6], 16))) for chat in chats]

    def attempt(text):
        return f"def add(n):\n    return n + {len(text)}"

    def cases(*asked, **more):
        answers = write_cases(*asked, **more)
        for subject, some in zip(asked[1], answers, strict=True):
            plus = int(subject.problem.split("adds ")[1].split(" ")[0])
            first = some[0].tokens.completion_ids[0]
            written = (f"assert add({first}) == {first + plus}", "assert add(7) == 0")
            some[0] = dataclasses.replace(some[0], cases=written)
        return answers

    monkeypatch.setattr(LocalModel, "answer", answer)
    monkeypatch.setattr(prompt, "parse", attempt)
    monkeypatch.setattr(write, "write_cases", cases)
    monkeypatch.setattr(write, "MAX_NEW_TOKENS", 8)


def problem(number):
    word, other = f"{number:06x}", f"{number:06x}"[::-1]  # no two questions are alike
    written = {
        "question": f"Write a function add(n) that adds {number} {word} {other} to n {word} and {other} of {word}.",
        "solution": f"def add(n):\n    return n + {number}",
        "tests": [f"assert add(0) == {number}", "assert add(10) == 3"],
    }
    return f"```json\n{json.dumps(written)}\n```"


def propose(where, settings, batches):
    place = [f"state_dir={where / 'state'}", f"tracking.log_dir={where / 'logs'}", f"proposer.batches={batches}"]
    where.mkdir(exist_ok=True)
    assert run_proposer(load_config([*settings, *place]), where / "out.jsonl") == 0


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def without_times(reports):
    return [{**one, "seconds": None, "finished_at_s": None} for one in reports]


@pytest.mark.slow
@pytest.mark.usefixtures("restored_logging", "scripted")
def test_a_stopped_proposer_with_a_test_writer_goes_on_with_the_same_tests(tmp_path, settings, capsys):
    """The proposer is trained too, so its checkpoints have adapters, which are its own alone."""
    whole, parts, settings = tmp_path / "whole", tmp_path / "parts", [*settings, "proposer.train=true"]
    propose(whole, settings, 2)
    shown = capsys.readouterr().out
    assert "test writer: adapters of " in shown
    assert "discriminating: 3 or more in 2 of 2 problems, none in 0" in shown
    propose(parts, settings, 1)
    propose(parts, settings, 1)
    assert lines(parts / "out.jsonl") == lines(whole / "out.jsonl")
    kept = CheckpointStore(whole / "state" / "proposer" / "checkpoints").load_latest()
    assert all(".default." in name for name in kept.learner["weights"])
    reports = lines(whole / "logs" / "proposals.jsonl")
    assert without_times(lines(parts / "logs" / "proposals.jsonl")) == without_times(reports)
    for report in reports:
        assert list(report["seconds"]) == ["write", "check", "solve", "cases", "try", "publish", "listen", "learn"]
        assert report["writer"]["num_problems"] == report["num_valid"] == 2
        assert report["writer"]["num_with_one"] == 2


def logits(model):
    with torch.no_grad():
        return model(torch.arange(9)[None]).logits


@pytest.mark.parametrize("is_trained", [False, True])
def test_proposer_solver_and_test_writer_share_one_model_and_keep_their_weights(
    tmp_path, settings, model, folder, is_trained
):
    config = load_config([*settings, f"proposer.train={is_trained}", f"state_dir={tmp_path}"])
    loaded = build.load(config, Console(io.StringIO()))
    plain = load_policy(model, str(tmp_path), Device.cpu, Dtype.float32, 1, None)[0]
    writer = load_policy(model, str(tmp_path), Device.cpu, Dtype.float32, 1, writer_in(folder))[0]
    dtype = next(loaded.model.parameters()).dtype
    near = {"rtol": 0.0, "atol": 1e-4 if dtype is torch.float32 else 0.2}
    if is_trained:
        for name, weight in trainable_weights(loaded.model).items():
            assert ".default." in name
            if "lora_B" in name:
                weight.fill_(0.1)
    with build.own_weights(config, loaded):
        assert torch.allclose(logits(loaded.model).float(), logits(plain.model), **near) is not is_trained
    with loaded.model.disable_adapter():
        assert torch.allclose(logits(loaded.model).float(), logits(plain.model), **near)
    with active_lora(loaded.model, build.WRITER):
        assert torch.allclose(logits(loaded.model).float(), logits(writer.model), **near)
    assert not torch.allclose(logits(writer.model), logits(plain.model), rtol=0.0, atol=0.5)


def test_a_test_writer_takes_memory_for_its_attempts(settings, model):
    sizes = [build.num_bytes(load_config(some), model, CPU) for some in (settings, [*settings, "proposer.writer=''"])]
    assert sizes[0] > sizes[1]


def test_a_folder_without_a_test_writer_is_refused_with_what_to_do(tmp_path, settings):
    config = load_config([*settings, f"proposer.writer={tmp_path}"])
    with pytest.raises(StateError, match="holds no test writer: give the state_dir of a `codezero verify`"):
        build.load(config, Console(io.StringIO()))


def test_a_test_writer_of_another_model_is_refused_with_two_ways_out(tmp_path, settings, model):
    other = save_tiny(tmp_path / "other")
    config = load_config([*settings, f"proposer.model={other}"])
    with pytest.raises(ConfigError, match=f"was trained from {model}, .* set proposer.model={model}, or train one"):
        build.load(config, Console(io.StringIO()))


def test_a_running_test_writer_is_refused_with_what_to_do(settings, folder):
    running = state.locked_state(folder / "verifier")
    with running, pytest.raises(StateError, match=f"in use by process {os.getpid()}.*: stop that test writer until"):
        build.load(load_config(settings), Console(io.StringIO()))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["proposer.url=http://x/v1", "proposer.model=m"],
            "a test writer's adapters; leave out proposer.url",
        ),
        (["proposer.reference=none"], "set proposer.reference=dry_run"),
        (["proposer=faithful"], "set proposer.reference=dry_run"),
    ],
)
def test_settings_that_a_test_writer_cannot_work_with_are_refused(more, message):
    with pytest.raises(ConfigError, match=message):
        load_config(["proposer.writer=state", *more])


def test_it_is_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["propose", "--help"])
    assert "proposer.writer=state" in capsys.readouterr().out
