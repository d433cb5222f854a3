"""The proposer node: its model by a scripted server or a tiny random one, its state, its file."""

import io
import json

import pytest
import torch

from codezero.cli import main
from codezero.config import NodeConfig, ProposerBackend, ProposerConfig
from codezero.config.load import load_config
from codezero.errors import ConfigError, ModelError, StateError
from codezero.observe.status import read_status
from codezero.proposer import build, node
from codezero.proposer.node import run_proposer
from codezero.runtime.console import Console
from codezero.train.checkpoint import CheckpointStore
from tests.builders import save_tiny
from tests.tiny_node import lines
from tests.unit.evaluate.loopback import reply, serve

pytestmark = pytest.mark.usefixtures("restored_process")  # a proposer node sets up its own
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def write_problem(handler, count):
    """Every answer another sound problem."""
    name = f"add_{count}"
    about = ("apples", "coins", "miles", "notes", "pages", "seats", "stars", "steps", "trees", "waves")[count % 10]
    problem = {
        "question": f"Write a function {name}(n) that adds {count} {about} to n {about}.",
        "solution": f"def {name}(n):\n    return n + {count}",
        "tests": [f"assert {name}(0) == {count}", f"assert {name}(10) == {count + 10}"],
    }
    reply(200, {"choices": [{"message": {"content": f"```json\n{json.dumps(problem)}\n```"}}]})(handler, count)


def propose(tmp_path, server, batches, *settings):
    return main(
        [
            *("propose", "--batches", str(batches), "--out", str(tmp_path / "out.jsonl")),
            *(f"proposer.url={server.url}/v1", "proposer.model=scripted", "proposer.batch_size=2"),
            *(f"state_dir={tmp_path / 'state'}", f"tracking.log_dir={tmp_path / 'logs'}", *settings),
        ]
    )


def test_batches_go_to_a_file_without_any_network(tmp_path, capsys):
    with serve(write_problem) as server:
        assert propose(tmp_path, server, 2) == 0
    written = lines(tmp_path / "out.jsonl")
    assert len(written) == 4
    (first,) = [line for line in written if "add_0(n)" in line["question"]]  # two are asked for at once
    assert first == {
        "id": first["id"],
        "source": "proposer",
        "difficulty": 2,
        "question": "Write a function add_0(n) that adds 0 apples to n apples.",
        "tests": "assert add_0(0) == 0\nassert add_0(10) == 10",
        "model": "scripted",
        "raw": first["raw"],
    }
    assert [line["batch"] for line in lines(tmp_path / "logs" / "proposals.jsonl")] == [1, 2]
    shown = capsys.readouterr().out
    assert "batch 2 | level 2 easy" in shown
    assert "done: 2 batches in 0s, 4 of 4 problems valid, 0 judged by solvers" in shown


def test_a_restarted_proposer_goes_on_and_writes_nothing_twice(tmp_path, capsys):
    with serve(write_problem) as server:
        propose(tmp_path, server, 1)
    with serve(write_problem) as server:  # the same problems once more, then new ones
        assert propose(tmp_path, server, 2) == 0
    assert "continuing in " in capsys.readouterr().out
    reports = lines(tmp_path / "logs" / "proposals.jsonl")
    assert [report["batch"] for report in reports] == [1, 2, 3]
    assert [report["num_valid"] for report in reports] == [2, 0, 2]
    assert reports[1]["rejected"] == {"duplicate": 2}
    assert len({line["id"] for line in lines(tmp_path / "out.jsonl")}) == 4


def test_a_batch_that_is_played_again_after_a_kill_is_not_written_twice(tmp_path, monkeypatch):
    def killed(*given):
        raise KeyboardInterrupt

    with serve(write_problem) as server, monkeypatch.context() as patched:
        patched.setattr(CheckpointStore, "save", killed)
        assert propose(tmp_path, server, 1) == 0
    assert len(lines(tmp_path / "out.jsonl")) == 2
    with serve(write_problem) as server:
        assert propose(tmp_path, server, 2) == 0
    assert len({line["id"] for line in lines(tmp_path / "out.jsonl")}) == len(lines(tmp_path / "out.jsonl")) == 4


def test_a_problem_that_a_kill_left_torn_is_written_again(tmp_path, monkeypatch):
    def killed(path, lines, *, sync):
        path.write_bytes(lines[:-9])
        raise KeyboardInterrupt

    with serve(write_problem) as server, monkeypatch.context() as patched:
        patched.setattr(node, "append", killed)
        assert propose(tmp_path, server, 1) == 0
    with serve(write_problem) as server:
        assert propose(tmp_path, server, 1) == 0
    first, torn, again = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(again)["raw"] != json.loads(first)["raw"]
    assert json.loads(again)["id"] in torn


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.symlink_to("none/x"), "error: cannot write {}: No such file or directory"),
        (lambda path: path.mkdir(), "error: {} is not a file, to which problems can be added: give another --out"),
        (lambda path: path.symlink_to("/dev/full"), "error: {} is not a file, to which"),  # endless to read
    ],
    ids=["in no folder", "a folder", "a device"],
)
def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys, make, says):
    make(tmp_path / "out.jsonl")
    with serve(write_problem) as server:
        assert propose(tmp_path, server, 1) == 1
    assert says.format(tmp_path / "out.jsonl") in capsys.readouterr().err
    assert server.bodies == []  # told before a batch is written


def test_a_server_that_is_away_is_one_line(tmp_path, capsys):
    with serve(write_problem) as server:
        pass
    assert propose(tmp_path, server, 1, "proposer.retries=0") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the proposer's model at http://127.0.0.1")
    assert error.count("\n") == 1


def test_a_model_in_this_process_writes_learns_and_resumes(tmp_path, monkeypatch):
    """A random model writes nothing that can be read: all is rejected, and equal rewards teach nothing."""
    sent, checker = [], node.Checker
    monkeypatch.setattr(node, "Checker", lambda **its: sent.append(its["model_id"]) or checker(**its))
    model = save_tiny(tmp_path / "model", max_position_embeddings=8192)
    settings = [
        *(f"model.name={model}", "model.device=cpu", "proposer.train=true", "proposer.max_new_tokens=8"),
        *("proposer.batches=1", "proposer.batch_size=2", f"state_dir={tmp_path}", f"tracking.log_dir={tmp_path}"),
    ]
    for batch in (1, 2):
        assert run_proposer(load_config(settings), None) == 0
        kept = CheckpointStore(tmp_path / "proposer" / "checkpoints").load_latest()
        assert kept.round == batch
    last = lines(tmp_path / "proposals.jsonl")[-1]
    assert (last["batch"], last["num_valid"], last["skipped"]) == (2, 0, "no scored groups")
    assert sent == ["model", "model"]  # others do not get the folder's path
    assert len(kept.node["learner"]["drafts"]) == 4
    assert any("lora" in name for name in kept.learner["weights"])


def test_a_run_that_does_not_train_keeps_what_one_before_has_learnt(tmp_path):
    model = save_tiny(tmp_path / "model", max_position_embeddings=8192)
    settings = [
        *(f"model.name={model}", "model.device=cpu", "proposer.max_new_tokens=8", "proposer.batches=1"),
        *("proposer.batch_size=1", f"state_dir={tmp_path}", f"tracking.log_dir={tmp_path}"),
    ]

    def kept_after(*more):
        assert run_proposer(load_config([*settings, *more]), None) == 0
        return CheckpointStore(tmp_path / "proposer" / "checkpoints").load_latest()

    trained, idle = kept_after("proposer.train=true"), kept_after()
    assert idle.round == 2
    torch.testing.assert_close(idle.learner["weights"], trained.learner["weights"], rtol=0, atol=0)
    assert any("lora" in name for name in idle.learner["weights"])
    assert len(idle.node["learner"]["drafts"]) == 1
    assert len(kept_after("proposer.train=true").node["learner"]["drafts"]) == 2


def test_a_trained_proposer_keeps_its_model_whatever_memory_is_free_and_refuses_another(tmp_path, monkeypatch):
    """Two models of equal shapes: the adapters of one would be loaded into the other unseen."""
    model, other = (save_tiny(tmp_path / name, max_position_embeddings=8192) for name in ("a", "b"))
    settings = [
        *(f"model.name={model}", "model.device=cpu", "proposer.train=true", "proposer.max_new_tokens=8"),
        *("proposer.batches=1", "proposer.batch_size=1", f"state_dir={tmp_path}", f"tracking.log_dir={tmp_path}"),
    ]
    assert run_proposer(load_config(settings), None) == 0
    with monkeypatch.context() as patched:
        patched.setattr(build, "choose_model", lambda *_: other)  # another amount of memory is free
        assert run_proposer(load_config(settings), None) == 0
    assert CheckpointStore(tmp_path / "proposer" / "checkpoints").load_latest().round == 2
    assert read_status(tmp_path / "proposer").model == model
    with pytest.raises(StateError, match=f"was made with proposer.model={model}, not {other}: set proposer.model="):
        run_proposer(load_config([*settings, f"proposer.model={other}"]), None)


def test_a_proposer_beside_a_solver_uses_a_folder_of_its_own(tmp_path):
    with serve(write_problem) as server:
        propose(tmp_path, server, 1)
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["proposer"]


@pytest.mark.parametrize(
    ("device", "gib", "expected"),
    [(CPU, 200, "small"), (CUDA, 8, "small"), (CUDA, 80, "Qwen/Qwen3-4B")],
)
def test_the_large_model_is_for_accelerators_that_hold_it(device, gib, expected):
    config = load_config(["model.name=small"])
    assert build.choose_model(config, device, gib << 30) == expected


def test_a_large_model_that_cannot_be_fetched_names_the_setting_that_chose_it(monkeypatch):
    def away(name, *_, **__):
        raise ModelError(f"the hub did not send {name}")

    monkeypatch.setattr(build.store, "prepare", away)
    auto, named = load_config(["model.name=small"]), load_config(["proposer.model=Qwen/Qwen3-4B"])
    with pytest.raises(ModelError, match=r"^proposer.model=auto takes .* the hub .*; or set proposer\.model=small,"):
        build.num_bytes(auto, build.LARGE_PROPOSER, CUDA)
    with pytest.raises(ModelError) as plain:
        build.num_bytes(named, build.LARGE_PROPOSER, CUDA)
    assert str(plain.value) == "the hub did not send Qwen/Qwen3-4B"


def test_a_named_model_is_taken_whatever_there_is():
    config = load_config(["proposer.model=mine"])
    assert build.choose_model(config, CUDA, 1 << 40) == "mine"


def test_a_url_means_a_server():
    assert build.choose_backend(ProposerConfig()) is ProposerBackend.transformers
    assert build.choose_backend(ProposerConfig(url="http://x/v1", model="m")) is ProposerBackend.openai


def test_a_model_that_does_not_fit_is_refused_with_two_ways_out(tmp_path):
    model = save_tiny(tmp_path / "model")
    config = load_config([f"model.name={model}", "model.device=cpu", "train.memory_limit_gib=0.1"])
    with pytest.raises(ModelError, match=r"needs \d\.\d GiB .* set proposer\.model .* or proposer\.url to a server"):
        build.load(config, Console(io.StringIO()))


@pytest.mark.parametrize(
    ("settings", "dtype"),
    [([], torch.bfloat16), (["model.dtype=float32"], torch.float32), (["proposer.train=true"], torch.float32)],
    ids=["fastest", "as set", "trained"],
)
def test_the_proposers_precision_on_a_cpu_that_computes_in_bfloat16(monkeypatch, settings, dtype):
    monkeypatch.setattr(build.devices, "computes_in_bfloat16", lambda: True)
    assert build.dtype_of(load_config(settings), torch.device("cpu")) is dtype


def test_training_takes_memory_that_writing_alone_does_not(tmp_path):
    model = save_tiny(tmp_path / "model")
    sizes = [
        build.num_bytes(load_config([f"model.name={model}", f"proposer.train={train}"]), model, CPU)
        for train in ("false", "true")
    ]
    assert sizes[0] < sizes[1]


def test_the_update_is_that_of_the_faithful_ppo_in_its_preset():
    faithful: NodeConfig = load_config(["proposer=faithful"])
    config = build.train_config(faithful.proposer)
    assert (config.epsilon, config.epsilon_high, config.num_iterations, config.beta) == (0.2, 0.2, 2, 0.01)
    assert config.lora_learning_rate == 1e-5


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("proposer.level=6", "levels run from 1 to 5"),
        ("proposer.band_low=0.9", "two rates with 0 <= low < high <= 1"),
        ("proposer.explore=1", "use a share in"),
        ("proposer.batch_size=0", "use 1 or more"),
        ("proposer.backend=openai", "give the name the server serves"),
        ("tasks.proposals.share=1.5", r"use a share in \[0, 1\]"),
    ],
)
def test_impossible_settings_are_refused(setting, message):
    with pytest.raises(ConfigError, match=message):
        load_config([setting])


def test_a_model_behind_a_server_cannot_be_trained():
    with pytest.raises(ConfigError, match="a model behind a server cannot be trained"):
        load_config(["proposer.url=http://x/v1", "proposer.model=m", "proposer.train=true"])
