"""A whole node pushes its tiny model to a hub on this machine, while it trains and a p2p daemon of its own runs."""

import os
import signal
import time

import pytest
import torch
from transformers import AutoModelForCausalLM

from codezero.cli import main
from codezero.train.checkpoint import saved_weights
from tests import tiny_node
from tests.builders import save_tiny
from tests.commands import spawn
from tests.e2e.test_node import EVEN
from tests.processes import programs, wait_until
from tests.unit.publish.builders import write
from tests.unit.publish.push_hub import TOKEN, push_hub


@pytest.fixture
def server():
    with push_hub() as found:
        yield found


def command(folder, server, *settings):
    """A node that learns in nearly every round, so that it soon has something to push."""
    (folder / "even.py").write_text(EVEN)
    model = save_tiny(folder / "model") if not (folder / "model").exists() else str(folder / "model")
    return tiny_node.command(
        model,
        folder,
        *("model.threads=1", "rollout.num_generations=4", "rollout.max_new_tokens=24", "tasks.builtin.weight=0"),
        *("tasks.modules=[even]", "push.enabled=true", f"push.endpoint={server.url}", "save_every_s=0"),
        *("tracking.level=DEBUG", *settings),
    )


def start(folder, server, *settings, **environment):
    return spawn(command(folder, server, *settings), env={**os.environ, "PYTHONPATH": str(folder), **environment})


def stop(process):
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=300)
    return output


@pytest.mark.slow
def test_a_node_pushes_while_it_trains_and_its_token_gets_nowhere(tmp_path, server):
    swarm = ("swarm=native", "swarm.listen=[/ip4/127.0.0.1/tcp/0]", f"swarm.identity_path={tmp_path}/swarm.pem")
    process = start(tmp_path, server, *swarm, "push.every_rounds=1", HUGGINGFACE_ACCESS_TOKEN=TOKEN, HF_TOKEN=TOKEN)
    environments = {}
    try:

        def is_done():
            for _, arguments, environment in programs(process.pid):
                environments[" ".join(arguments)] = str(environment)
            assert process.poll() is None, process.stdout.read()
            return len(server.commits) >= 2 and any("codezero.publish.upload" in name for name in environments)

        wait_until(is_done, limit_s=600)
    finally:
        output = stop(process)
    assert process.returncode == 0
    assert any("p2pd" in name for name in environments)
    for name, environment in environments.items():
        assert TOKEN not in name + environment, name
    assert "push: the model to model-Gensyn-Swarm-" in output
    assert TOKEN not in output
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path
    assert not (tmp_path / "state" / "push").exists()
    ((repo, files),) = server.repos.items()
    assert repo.startswith("alice/model-Gensyn-Swarm-")
    pulled = AutoModelForCausalLM.from_pretrained(write(tmp_path / "pulled", files))
    first = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert any(not torch.equal(a, b) for a, b in zip(pulled.parameters(), first.parameters(), strict=True))


@pytest.mark.slow
def test_a_stop_waits_for_no_silent_hub_and_training_not_either(tmp_path, server):
    server.hangs.add("whoami")
    began_s = time.monotonic()
    process = start(tmp_path, server, HF_TOKEN=TOKEN)
    try:
        wait_until(lambda: server.asked("whoami"), limit_s=600)
        start_s = time.monotonic() - began_s
        saved = sorted((tmp_path / "state" / "checkpoints").glob("round-*"))
        wait_until(lambda: sorted((tmp_path / "state" / "checkpoints").glob("round-*"))[0] > saved[-1], limit_s=600)
    finally:
        asked_s = time.monotonic()
        stop(process)
    assert process.returncode == 0
    assert time.monotonic() - asked_s < 15 + start_s  # on a busy machine it takes longer, as the start did
    newest = sorted((tmp_path / "state" / "checkpoints").glob("round-*"))[-1]
    assert saved_weights(newest)


@pytest.mark.usefixtures("restored_process")
def test_a_node_that_is_to_push_without_a_token_says_so_before_anything_else(tmp_path, server, monkeypatch, capsys):
    monkeypatch.setenv("HUGGINGFACE_ACCESS_TOKEN", "None")
    monkeypatch.setenv("HF_TOKEN", "")
    assert main(command(tmp_path, server)[3:]) == 1
    assert "error: push.enabled=true needs a token of the hub that may write" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
