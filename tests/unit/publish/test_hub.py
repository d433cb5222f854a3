"""Uploads through the hub's own library, against a hub on this machine."""

import email.utils
import errno
import hashlib
import json
import os
import subprocess
import threading
from contextlib import contextmanager

import psutil
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from codezero.config import TrainMethod
from codezero.errors import Stopping
from codezero.publish import pack, upload
from codezero.publish.card import card
from codezero.publish.hub import Hub, UploadResult
from tests.processes import programs, wait_until, wait_until_gone
from tests.unit.publish.builders import Trainee, report, write
from tests.unit.publish.push_hub import TOKEN, push_hub


@pytest.fixture
def server():
    with push_hub() as found:
        yield found


def hub(server, **limits):
    return Hub(TOKEN, server.url, private=False, **{"timeout_s": 60.0, **limits})


def push(trainee, server, checkpoint, repo=""):
    packer = trainee.packer()
    folder = packer.pack(checkpoint)
    text = card(trainee.facts, [report(trainee.round)])
    return hub(server).push(folder, repo or trainee.facts.repository, text, f"Round {trainee.round}")


def small(tmp_path):
    return write(tmp_path / "files", {"config.json": b"{}", "model.safetensors": b"weights"})


def test_an_upload_whose_process_the_machine_does_not_start_is_a_failed_one(tmp_path, server, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(subprocess, "Popen", full)
    answer = hub(server).push(small(tmp_path), "alice/tiny", "card", "Round 1")
    assert answer == UploadResult(
        repo="alice/tiny", detail="the upload's process cannot be started: Too many open files"
    )


def test_a_whole_model_is_pushed_and_loads_again(tmp_path, server):
    trainee = Trainee(tmp_path)
    checkpoint = trainee.train()
    answer = push(trainee, server, checkpoint)
    expected = trainee.logits()
    trainee.train()
    assert not torch.equal(expected, trainee.logits())
    (repo,) = server.repos
    assert answer.repo == repo == f"alice/{trainee.facts.repository}"
    assert answer.url == f"{server.url}/{repo}/commit/{1:040d}"
    files = write(tmp_path / "pulled", server.repos[repo])
    assert torch.equal(trainee.logits(AutoModelForCausalLM.from_pretrained(files)), expected)
    assert AutoTokenizer.from_pretrained(files).chat_template == trainee.policy.tokenizer.chat_template
    assert f'AutoModelForCausalLM.from_pretrained("{repo}")' in (files / "README.md").read_text()
    assert server.tokens == {TOKEN}
    for name, data in server.repos[repo].items():
        assert TOKEN.encode() not in data, name
        assert str(tmp_path).encode() not in data, name


def test_an_adapter_is_pushed_and_loads_again_on_its_base(tmp_path, server):
    trainee = Trainee(tmp_path, TrainMethod.lora)
    push(trainee, server, trainee.train())
    expected = trainee.logits()
    (repo,) = server.repos
    files = write(tmp_path / "pulled", server.repos[repo])
    base = AutoModelForCausalLM.from_pretrained(trainee.source)
    assert not torch.allclose(trainee.logits(base), expected)
    assert torch.allclose(trainee.logits(PeftModel.from_pretrained(base, files)), expected, atol=1e-4)
    assert {name for name in server.repos[repo] if "model" in name} == {"adapter_model.safetensors"}
    assert b'"base_model_name_or_path": "org/tiny"' in server.repos[repo]["adapter_config.json"]
    for name, data in server.repos[repo].items():
        assert str(tmp_path).encode() not in data, name


def test_a_model_in_a_repository_that_held_an_adapter_takes_its_place(tmp_path, server):
    adapter = Trainee(tmp_path / "a", TrainMethod.lora)
    push(adapter, server, adapter.train(), "mine")
    server.repos["alice/mine"]["notes.txt"] = b"my own"
    whole = Trainee(tmp_path / "b")
    push(whole, server, whole.train(), "alice/mine")
    names = set(server.repos["alice/mine"])
    assert {"model.safetensors", "config.json", "notes.txt", ".gitattributes"} <= names
    assert not names & {"adapter_config.json", "adapter_model.safetensors"}


def test_a_model_in_several_files_loads_again_and_files_that_are_no_more_are_removed(tmp_path, server, monkeypatch):
    trainee = Trainee(tmp_path)
    for size in ("20KB", "40KB", "1MB"):
        monkeypatch.setattr(pack, "SHARD", size)
        push(trainee, server, trainee.train(), "mine")
        files = write(tmp_path / size, server.repos["alice/mine"])
        assert torch.equal(trainee.logits(AutoModelForCausalLM.from_pretrained(files)), trainee.logits())
        index = files / "model.safetensors.index.json"
        named = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}
        assert {path.name for path in files.glob("*.safetensors")} == named
        assert (len(named) > 1) == (size != "1MB")


def test_what_arrived_before_a_failure_is_not_sent_again(tmp_path, server):
    folder = small(tmp_path)
    server.faults["/commit/"] = [(503, {})]
    first = hub(server).push(folder, "alice/x", "", "first")
    second = hub(server).push(folder, "alice/x", "", "second")
    assert (first.status, first.url, second.status) == (503, "", None)
    assert server.asked("/lfs/") - server.asked("/lfs/objects") == 1
    assert server.commits == ["second"]


def test_a_new_repository_is_private_where_that_is_wanted(tmp_path, server):
    Hub(TOKEN, server.url, private=True, timeout_s=10.0).push(small(tmp_path), "alice/x", "", "m")
    assert server.private == {"alice/x": True}


@pytest.mark.parametrize("place", ["whoami", "repos/create", "preupload", "objects/batch", "/lfs/", "/commit/"])
def test_a_hub_that_limits_us_is_not_asked_again_at_once_wherever_it_does(tmp_path, server, place):
    server.faults[place] = [(429, {"Retry-After": "77"})]
    answer = hub(server).push(small(tmp_path), "x", "", "m")
    assert (answer.status, answer.wait_s, answer.url) == (429, 77.0, "")
    assert answer.repo == ("x" if place == "whoami" else "alice/x")


@pytest.mark.parametrize(("status", "place"), [(401, "whoami"), (403, "repos/create"), (403, "/commit/")])
def test_a_refusal_comes_with_what_the_hub_says(tmp_path, server, status, place):
    server.faults[place] = [(status, {})] * 2
    answer = hub(server).push(small(tmp_path), "x", "", "m")
    assert (answer.status, answer.url) == (status, "")
    assert "planted fault" in answer.detail


def test_a_refusal_of_the_storage_says_nothing_of_the_token(tmp_path, server):
    server.faults["/lfs/" + hashlib.sha256(b"weights").hexdigest()] = [(403, {})]  # of a link that has expired
    files = small(tmp_path)
    answer = hub(server).push(files, "alice/x", "", "m")
    assert answer == UploadResult(repo="alice/x", detail="its storage says HTTP 403")
    assert hub(server).push(files, "alice/x", "", "m").url


def test_a_wrong_token_is_refused_and_shown_nowhere(tmp_path, server):
    wrong = Hub("hf_WrongToken", server.url, private=False, timeout_s=10.0)
    answer = wrong.push(small(tmp_path), "x", "", "m")
    assert answer.status == 401
    assert "hf_WrongToken" not in repr(answer)
    assert server.repos == {}


def test_a_hub_that_is_away_or_silent_costs_its_time_limit(tmp_path, server):
    away = Hub(TOKEN, "http://127.0.0.1:9", private=False, timeout_s=1.0, limit_s=60.0)
    assert away.push(small(tmp_path), "alice/x", "", "m").status is None
    server.hangs.add("repos/create")
    answer = hub(server, limit_s=4.0).push(tmp_path / "files", "alice/x", "", "m")
    assert (answer.status, answer.url, answer.detail) == (None, "", "it took too long")


@contextmanager
def under_way(tmp_path, server, asked):
    """An upload that the hub never answers; gives its process. It is stopped by the end."""
    server.hangs.add("repos/create")
    ended = []

    def upload_it():
        with pytest.raises(Stopping):
            asked.push(small(tmp_path), "alice/x", "", "m")
        ended.append(True)

    thread = threading.Thread(target=upload_it)
    thread.start()
    try:
        wait_until(lambda: server.asked("repos/create"))
        ((child, *_),) = [found for found in programs(os.getpid()) if "codezero.publish.upload" in found[1]]
        yield child
    finally:
        asked.stop()
        thread.join(60)
    assert ended == [True]


def test_a_stop_ends_an_upload_at_once_and_leaves_no_process(tmp_path, server):
    asked = hub(server, limit_s=100.0)
    with under_way(tmp_path, server, asked) as child:
        assert child.is_running()
    assert not child.is_running()
    with pytest.raises(Stopping):
        asked.push(tmp_path / "files", "alice/x", "", "m")


def test_the_uploading_process_has_no_token_in_its_environment_or_arguments(tmp_path, server, monkeypatch):
    for name in ("HUGGINGFACE_ACCESS_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.setenv(name, TOKEN)
    with under_way(tmp_path, server, hub(server, limit_s=100.0)) as child:
        environment, arguments = child.environ(), child.cmdline()
    assert "PATH" in environment
    assert TOKEN not in str(environment)
    assert TOKEN not in str(arguments)


def test_the_uploading_process_does_not_outlive_its_parent(tmp_path, server):
    server.hangs.add("repos/create")
    (tmp_path / "files").mkdir()
    pid = os.fork()
    if pid == 0:  # a node that is killed
        hub(server, timeout_s=300.0).push(tmp_path / "files", "alice/x", "", "m")
        os._exit(0)
    try:
        wait_until(lambda: server.asked("repos/create"))
        (child,) = psutil.Process(pid).children()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    wait_until_gone([child.pid])


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "120"}, 120.0),
        ({"retry-after": email.utils.formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"retry-after": email.utils.formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "-5"}, None),
        ({"ratelimit": '"api";r=0;t=55'}, 55.0),
        ({"ratelimit": "x" * 10_000}, None),
        ({}, None),
    ],
)
def test_what_a_hub_asks_to_wait(headers, wait_s):
    assert upload.wait_of(headers, 1_000_000.0) == wait_s
