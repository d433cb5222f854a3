"""A proposer with a test writer: three sets of weights on one model, going on after a stop, and what is refused.

A tiny random model writes neither problems nor code, so both are made of what it is asked or has sampled.
"""

import dataclasses
import hashlib
import io
import json
import shutil

import pytest
import torch

from codezero.cli import main
from codezero.config import Device, Dtype, checkout
from codezero.config.load import load_config
from codezero.errors import CheckpointError, ConfigError, StateError
from codezero.harness.policy import load_policy
from codezero.llm import sample
from codezero.llm.load import load_model
from codezero.policy.writer import train_config
from codezero.prompts import solver as prompt
from codezero.proposer import build
from codezero.proposer.models import LocalModel, Written
from codezero.proposer.node import run_proposer
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.train import checkpoint
from codezero.train.checkpoint import CheckpointStore, trainable_weights
from codezero.train.method import active_lora, apply_lora
from codezero.verifier import write
from codezero.verifier.trained import FollowedWriter, writer_in
from codezero.verifier.write import write_cases
from tests.builders import save_tiny
from tests.tiny_node import lines, without_times

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("model"), max_position_embeddings=16384)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """The state folder of a test writer whose adapters are not zero."""
    made = tmp_path_factory.mktemp("writer")
    begin(made, model)
    save(made, weights_of(model))
    return made


def weights_of(model, rank=4):
    """Adapters that are not zero."""
    adapted = apply_lora(load_model("m", model, CPU, torch.float32).model, train_config(1e-4, rank), seed=0)
    weights = trainable_weights(adapted)
    for name, weight in weights.items():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))
    return weights


def begin(folder, model):
    """What a test writer leaves before its first batch."""
    bound = {"model.name": model, "verifier.lora_r": 4, "verifier.train_solver": False}
    (folder / "verifier").mkdir()
    state.bind_settings(folder / "verifier", bound)


def save(folder, weights, batch=1, factor=1):
    """Saves a batch of a test writer, its adapters scaled by a factor."""
    scaled = {name: factor * weight for name, weight in weights.items()}
    return CheckpointStore(folder / "verifier" / "checkpoints").save(
        batch, batch, {"weights": scaled, "engine": {}}, {}
    )


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


@pytest.mark.slow
@pytest.mark.usefixtures("restored_process", "scripted")
def test_a_stopped_proposer_with_a_test_writer_goes_on_with_the_same_tests(tmp_path, settings, capsys):
    """The proposer is trained too, so its checkpoints have adapters, which are its own alone."""
    whole, parts, settings = tmp_path / "whole", tmp_path / "parts", [*settings, "proposer.train=true"]
    propose(whole, settings, 2)
    shown = capsys.readouterr().out
    assert "test writer: adapters of " in shown
    assert "discriminating: 3 or more in 2 of 2 problems, none in 0" in shown
    propose(parts, settings, 1)
    propose(parts, settings, 1)
    assert lines(parts / "out.jsonl") == lines(whole / "out.jsonl") != []
    kept = CheckpointStore(whole / "state" / "proposer" / "checkpoints").load_latest()
    assert all(".default." in name for name in kept.learner["weights"])
    reports = lines(whole / "logs" / "proposals.jsonl")
    assert without_times(lines(parts / "logs" / "proposals.jsonl")) == without_times(reports) != []
    for report in reports:
        assert list(report["seconds"]) == ["write", "check", "solve", "cases", "try", "publish", "listen", "learn"]
        assert report["writer"]["num_problems"] == report["num_valid"] == 2
        assert report["writer"]["num_with_one"] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("restored_process", "scripted")
def test_where_memory_holds_few_attempts_a_proposer_with_a_test_writer_makes_few_at_a_time(
    tmp_path, settings, monkeypatch
):
    begin_to_decode = sample._Decoder

    def scarce(model, request):
        if len(request.prompts) * request.num_generations > 1:
            raise torch.OutOfMemoryError
        return begin_to_decode(model, request)

    monkeypatch.setattr(sample, "_Decoder", scarce)
    propose(tmp_path, settings, 1)
    (report,) = lines(tmp_path / "logs" / "proposals.jsonl")
    assert report["writer"]["num_cases"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("restored_process", "scripted")
def test_a_proposer_begins_before_its_test_writers_first_batch_and_follows_it_from_then_on(
    tmp_path, settings, model, monkeypatch, capsys
):
    folder, weights, scripted = tmp_path / "writer", weights_of(model), LocalModel.answer
    folder.mkdir()
    begin(folder, model)
    batches = iter([None, 3, None, 5])  # saved while the proposer writes

    def answer(self, chats, prefixes):
        if (batch := next(batches)) is not None:
            save(folder, weights, batch)
        return scripted(self, chats, prefixes)

    monkeypatch.setattr(LocalModel, "answer", answer)
    with state.locked_state(folder / "verifier"):  # it runs
        propose(tmp_path / "all", [*settings, f"proposer.writer={folder}"], 4)
    reports = lines(tmp_path / "all" / "logs" / "proposals.jsonl")
    assert [one["writer"] and one["writer"]["batch"] for one in reports] == [None, 3, 3, 5]
    assert [one["num_valid"] for one in reports] == [2, 2, 2, 2]
    shown = capsys.readouterr().out
    assert shown.count("no checkpoint yet, so problems have their own tests until there is one") == 1
    assert "| cases " in shown
    assert " by batch 5 of the test writer, " in shown


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
    assert FollowedWriter(loaded.model, build.WRITER, folder).update() == 1
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
    with pytest.raises(ConfigError, match=f"was trained from {model}, .* set proposer.model={model}, or ") as refused:
        build.load(config, Console(io.StringIO()))
    assert f"`{checkout.command('verify', f'model.name={other}')}`" in str(refused.value)


class Follower:
    """A proposer's model that follows the test writer in a folder of its own."""

    def __init__(self, folder, settings, model):
        begin(folder, model)
        self.folder, self.weights = folder, weights_of(model)
        self.model = build.load(load_config([*settings, f"proposer.writer={folder}"]), Console(io.StringIO())).model
        self.followed = FollowedWriter(self.model, build.WRITER, folder)

    def factor(self):
        """How much larger the model's adapters are than the first ones."""
        with active_lora(self.model, build.WRITER):
            own = {name: weight for name, weight in trainable_weights(self.model).items() if "lora_B" in name}
            (factor,) = {
                round((weight / self.weights[name.replace(".writer.", ".default.")]).mean().item(), 3)
                for name, weight in own.items()
            }
        return factor


@pytest.fixture
def follower(tmp_path, settings, model):
    return Follower(tmp_path, settings, model)


def test_the_newest_checkpoint_is_taken_over_when_there_is_a_new_one(follower):
    found = []
    for batch in (None, 1, None, 2, 3):
        if batch is not None:
            save(follower.folder, follower.weights, batch, factor=batch)
        found.append((follower.followed.update(), follower.factor()))
    assert found == [(0, 0.0), (1, 1.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_checkpoint_that_vanishes_or_is_damaged_leaves_the_one_before(follower, monkeypatch, caplog):
    save(follower.folder, follower.weights, 1)
    assert follower.followed.update() == 1
    (save(follower.folder, follower.weights, 2, factor=2) / "learner.pt").write_bytes(b"torn")
    assert (follower.followed.update(), follower.factor()) == (1, 1.0)
    assert "round-00000002 cannot be read (learner.pt is " in caplog.text
    whole = save(follower.folder, follower.weights, 3, factor=3)
    real = checkpoint.saved_weights

    def pruned(path):
        shutil.rmtree(path)
        return real(path)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "saved_weights", pruned)
        assert (follower.followed.update(), follower.factor()) == (1, 1.0)
    assert not whole.exists()
    save(follower.folder, follower.weights, 4, factor=4)
    assert (follower.followed.update(), follower.factor()) == (4, 4.0)


def test_another_test_writer_in_the_same_folder_ends_the_proposer_with_what_to_do(follower, model):
    save(follower.folder, weights_of(model, rank=8), 2)
    with pytest.raises(CheckpointError, match=r"of another model or verifier.lora_r: start the proposer again"):
        follower.followed.update()


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
