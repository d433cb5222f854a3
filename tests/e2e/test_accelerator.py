"""Whole nodes on a pretended accelerator (tests/pretend.py), and on a CPU with the state that they leave."""

import json
import subprocess
import sys

import pytest

from tests.builders import save_tiny, tiny_tokenizer
from tests.commands import ROOT
from tests.e2e.test_node import command, run_here
from tests.tiny_node import reports

KERNELS_A_TENSOR = 24
"""Kernels of an optimizer step for each tensor that is trained, if one chunk holds it."""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    # Random text has other rewards only where it ends by itself: several tokens end it, so that about half does.
    ends = [tiny_tokenizer().eos_token_id, *b"ace"]
    return save_tiny(tmp_path_factory.mktemp("model"), eos_token_id=ends)


@pytest.fixture(scope="module")
def played(model, tmp_path_factory):
    """Plays nodes, given as (name of a folder, kernel that runs out of memory or -1, settings). Returns the folders'
    parent and what each run counted."""
    parent = tmp_path_factory.mktemp("played")
    short = "rollout.max_new_tokens=32"  # each kernel takes a hundred times what it takes elsewhere
    many = ("swarm.num_local=2", "rollout.num_generations=8", short)
    runs = [
        ("full", -1, "train.method=full", "rollout.max_new_tokens=64", "swarm.num_local=2", "rounds=2"),
        ("full", -1, "train.method=full", "rollout.num_generations=8", short, "swarm.num_local=0", "rounds=1"),
        ("lora", -1, "train.method=lora", *many, "train.beta=0.04", "train.num_iterations=2", "rounds=2"),
        (
            *("small", 400, "train.method=full", "train.masters=false", "train.gradient_checkpointing=true"),
            *(*many, "rounds=2"),
        ),
    ]
    given = [[at, command(model, parent / name, *settings)[4:]] for name, at, *settings in runs]
    done = subprocess.run(
        [sys.executable, "-m", "tests.pretend"],
        cwd=ROOT,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=1100,  # a busy machine is no failure
    )
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    return parent, lines, json.loads(last)


def test_whole_rounds_are_played_and_taken_up_again(played):
    parent, lines, counts = played
    assert [one["code"] for one in counts] == [0] * 4
    assert [report["round"] for report in reports(parent / "full")] == [1, 2, 3]
    assert any("continuing" in line and "after round 2" in line for line in lines)
    for name in ("full", "lora", "small"):
        updates = [report for report in reports(parent / name) if report["loss"] is not None]
        assert updates, name


def test_the_device_decides_how_many_tasks_a_round_has_unless_that_is_set(played):
    parent, _, _ = played
    assert [report["num_local_groups"] for report in reports(parent / "full")][:3] == [2, 2, 8]


def test_the_host_waits_at_most_once_in_sixteen_tokens(played):
    _, _, (full, *_) = played
    found = full["sampling"]
    assert found["tokens"] > 200
    assert 16 * found["syncs"] <= found["tokens"], found["where"]
    assert 8 * found["syncs"] <= found["steps"], found["where"]


def test_an_optimizer_step_starts_few_kernels(played):
    _, _, (full, *_) = played
    found = full["optimizing"]
    assert found["steps"] > 0
    assert found["kernels"] <= KERNELS_A_TENSOR * 25 * found["steps"]
    assert found["syncs"] == found["steps"], found["where"]  # the gradients' norm


def test_out_of_memory_while_sampling_ends_no_round(played):
    parent, _, _ = played
    log = (parent / "small" / "logs" / "swarm.log").read_text()
    assert "out of memory with 16 attempts at a time: from now on it is 8" in log
    assert [report["round"] for report in reports(parent / "small")] == [1, 2]


@pytest.mark.usefixtures("restored_process")
def test_a_cpu_goes_on_where_the_accelerator_stopped(played, model, capsys):
    parent, _, _ = played
    assert run_here(model, parent / "full", "train.method=full", "rounds=1") == 0
    said = capsys.readouterr().out
    assert "after round 3" in said
    assert "cpu, float32" in said
    assert [report["round"] for report in reports(parent / "full")] == [1, 2, 3, 4]
