"""A whole swarm on one machine as a user starts it: a bootnode and three nodes, on a tiny random model."""

import json
import re
import signal
import subprocess
import sys

import psutil
import pytest
import torch

from codezero.train.checkpoint import CheckpointStore
from tests import tiny_node
from tests.builders import save_tiny, tiny_model
from tests.commands import ROOT, run, spawn
from tests.processes import wait_until
from tests.tiny_node import lines, reports

NODES = ("node-1", "node-2", "node-3")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Short ones: to the tiny tokenizer every byte is a token."""
    file = tmp_path_factory.mktemp("tasks") / "mbpp.jsonl"
    rows = [
        {"task_id": number, "text": f"Add {number}.", "test_list": [f"assert f(1) == {number + 1}"]}
        for number in range(601, 641)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def up(model, tasks, folder, *arguments, patience=20):
    """Long random answers in groups of 8: some end by themselves and some do not, so that their rewards differ."""
    return [
        *(sys.executable, "-m", "codezero", "swarm", "up", "--nodes", "3", "--proposers", "0"),
        *("--folder", str(folder), *arguments, *tiny_node.settings(model), "tasks=mbpp", f"tasks.mbpp.path={tasks}"),
        *("train.learning_rate=1e-3", "rollout.num_generations=8", "rollout.max_new_tokens=150"),
        f"swarm.patience={patience}",
    ]


def peer_ids(output):
    """Peer id by node, from what each says of itself."""
    return dict(re.findall(r"^(node-\d) +\| peer: (\w+),", output, re.M))


def left_over(folder):
    """Processes of this swarm that still run."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()):
            found.append(process.info["cmdline"])
    return found


def test_three_nodes_learn_from_each_other_in_every_round(model, tasks, tmp_path):
    ended = subprocess.run(
        up(model, tasks, tmp_path, "--rounds", "3", patience=200),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    peers = peer_ids(ended.stdout)
    assert set(peers) == set(NODES)
    assert ended.stdout.count("tasks of peers: only those that this node knows itself, ") == len(NODES)
    start = tiny_model().state_dict()
    for node in NODES:
        others = {peers[other] for other in NODES if other != node}
        rounds = reports(tmp_path / node)
        assert [report["round"] for report in rounds] == [1, 2, 3]
        assert [report["num_external_groups"] for report in rounds] == [2, 2, 2]
        # A node that starts late, as on a busy machine, is not there for the first rounds of the others.
        assert {peer for report in rounds for peer in report["external_groups"]} == others
        weights = CheckpointStore(tmp_path / node / "state" / "checkpoints").load_latest().learner["weights"]
        assert any(not torch.equal(weights[name], start[name]) for name in weights if name in start)
    assert left_over(tmp_path) == []


def test_a_killed_node_leaves_the_others_running_and_comes_back_with_its_state(model, tasks, tmp_path):
    process = spawn(up(model, tasks, tmp_path))
    try:
        wait_until(lambda: all(len(reports(tmp_path / node)) >= 1 for node in NODES), 600)
        victim = next(p for p in psutil.process_iter(["cmdline"]) if is_node(p, tmp_path / "node-2"))
        victim.kill()
        done = {node: len(reports(tmp_path / node)) for node in NODES}
        for node in NODES:
            wait_until(lambda node=node: len(reports(tmp_path / node)) >= done[node] + 2, 600)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    numbers = [report["round"] for report in reports(tmp_path / "node-2")]
    assert numbers == list(range(1, len(numbers) + 1))  # it went on where it was, each round once
    assert left_over(tmp_path) == []


def test_a_test_writer_learns_beside_the_nodes_and_comes_back_and_the_proposer_follows_it(tmp_path):
    """Such a model writes no problem, so no test is written; the proposer still says which batch it would be of."""
    model, home = save_tiny(tmp_path / "model", max_position_embeddings=16384), tmp_path / "home"
    command = ["swarm", "up", "--nodes", 1, "--with-verifier", "--folder", home, f"model.name={model}"]
    command += [f"evaluator.model={model}", "model.device=cpu", "tasks=builtin", "swarm.num_local=1", "probe.share=0"]
    command += ["rollout.num_generations=2", "rollout.max_new_tokens=8", "proposer.max_new_tokens=8"]
    command += ["verifier.num_candidates=2", "verifier.num_generations=2", "swarm.listen=[/ip4/127.0.0.1/tcp/0]"]
    cases, proposals = home / "verifier/logs/cases.jsonl", home / "proposer-1/logs/proposals.jsonl"

    def followed():
        """The test writer's batch that the proposer's last batch is by."""
        return max((one["writer"]["batch"] for one in lines(proposals) if one["writer"]), default=0)

    with (tmp_path / "output").open("w") as output:
        arguments = [sys.executable, "-m", "codezero", *map(str, command)]
        process = subprocess.Popen(arguments, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: process.poll() is not None or followed() >= 1, 600)
            victim = next(p for p in psutil.process_iter(["cmdline"]) if is_node(p, home / "verifier", "verify"))
            victim.kill()
            before = len(lines(cases))
            wait_until(lambda: process.poll() is not None or followed() >= before + 2, 600)
            told = run(["status", home])
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=300)
    shown = (tmp_path / "output").read_text()
    assert code == 0, shown
    assert told.returncode == 0
    assert "verifier" in told.stdout
    assert "verifier   | crashed: killed by signal 9" in shown
    assert "verifier   | stopped, 1 restart\n" in shown
    assert [one["batch"] for one in lines(cases)] == list(range(1, len(lines(cases)) + 1))
    assert left_over(home) == []


def is_node(process, folder, command="run"):
    arguments = process.info["cmdline"] or ()
    return command in arguments and any(str(folder) in part for part in arguments)
