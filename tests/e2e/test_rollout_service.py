"""A rollout server and a node, as on two machines, and what becomes of one when the other ends."""

import signal
import sys
from itertools import pairwise

import pytest

from codezero.rollouts import rollout_file
from tests.commands import spawn
from tests.e2e.test_node import (
    last_saved_round,
    model,  # noqa: F401
    run,
    run_here,
    start,
    wait_for_round,
)
from tests.tiny_node import reports

pytestmark = pytest.mark.usefixtures("restored_process")


@pytest.fixture
def serve(model, tmp_path):  # noqa: F811
    """A function that starts a server on a port, with the rollout file given."""
    running = []

    def serve(file, port=0, *settings):
        command = [sys.executable, "-m", "codezero", "rollout", "serve", "--port", str(port), "--file", str(file)]
        command += [f"model.name={model}", "model.device=cpu", "model.threads=1", *settings]
        output = (tmp_path / f"{file.stem}.log").open("w")
        process = spawn(command)
        running.append(process)
        for line in process.stdout:
            output.write(line)
            if "(Ctrl-C ends it)" in line:
                return process
        raise AssertionError(f"ended with {process.wait()}: {(tmp_path / f'{file.stem}.log').read_text()}")

    yield serve
    for process in running:
        process.kill()
        process.communicate()


LONG = ("rollout.num_generations=8", "rollout.max_new_tokens=64", "swarm.num_local=2")
"""Attempts of a random model of which some end by themselves, so that most rounds have an update."""


def remote(*files, **settings):
    more = {"rollout.max_staleness": 1, **settings}
    names = ",".join(map(str, files))
    return ["rollout.engine=remote", f"rollout.servers=[{names}]", *(f"{key}={value}" for key, value in more.items())]


def served(process):
    """The lines of a server on its work, after its end."""
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=300)
    assert process.returncode == 0, rest
    return rest.splitlines()


def test_a_node_learns_from_what_a_server_samples(model, tmp_path, serve):  # noqa: F811
    file = tmp_path / "server.yaml"
    server = serve(file)
    assert file.stat().st_mode & 0o777 == 0o600
    adapters = ("train.method=lora", "train.lora_learning_rate=1e-2")
    done = run(model, tmp_path, "rounds=4", *adapters, *LONG, *remote(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "is left out" not in done.stdout
    assert list((tmp_path / "state" / "rollouts").iterdir()) == []
    found = reports(tmp_path)
    assert [report["round"] for report in found] == [1, 2, 3, 4]
    versions = [0, *(report["policy_version"] for report in found)]
    assert versions[-1] >= 2
    # A round's rollouts were begun with the weights of the round before.
    assert [report["staleness"] for report in found] == [0, *(now - old for old, now in pairwise(versions[:4]))]
    lines = served(server)
    assert sum(line.startswith("rollouts: 16, ") for line in lines) in (4, 5)
    assert sum(line.startswith("weights: ") for line in lines) >= versions[-1] - 1


def test_a_run_survives_the_death_of_server_and_node_and_a_server_keeps_token_and_address(
    model,  # noqa: F811
    tmp_path,
    serve,
    capsys,
):
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    first, second = (serve(file) for file in files)
    node = start(model, tmp_path, *remote(*files), "save_every_s=0")
    wait_for_round(node, 2)
    first.kill()
    wait_for_round(node, 5)
    node.kill()
    node.communicate()
    saved = last_saved_round(tmp_path)
    assert saved >= 4
    again = run(model, tmp_path, "rounds=2", *remote(*files))
    assert again.returncode == 0, again.stderr
    assert f"continuing in {tmp_path}/state after round {saved}" in again.stdout
    assert again.stdout.count("a.yaml is left out") == 1
    assert "b.yaml is left out" not in again.stdout
    second.kill()
    assert run_here(model, tmp_path, "rounds=2", *remote(*files)) == 0
    assert capsys.readouterr().out.count("is left out") == 2
    assert [report["round"] for report in reports(tmp_path)] == list(range(1, saved + 5))

    known = rollout_file.read(files[0])
    serve(files[0], int(known.url.rpartition(":")[2]))
    assert rollout_file.read(files[0]) == known


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["rollout.engine=remote"], "error: rollout.servers"),
        (["rollout.servers=[x.yaml]"], "error: rollout.servers"),
        (remote("nowhere.yaml"), "copy it again from the machine where `codezero rollout serve` wrote it"),
        (remote("pyproject.toml"), "is no rollout file, or damaged"),
    ],
)
def test_what_cannot_work_is_said_at_the_start(model, tmp_path, settings, says, capsys):  # noqa: F811
    assert run_here(model, tmp_path, *settings) == 1
    assert says in capsys.readouterr().err
