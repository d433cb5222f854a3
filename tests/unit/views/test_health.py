"""Health as read from a node's folder, held by a process of its own."""

import os
import time
from types import SimpleNamespace

import psutil
import pytest

from codezero.cli import main
from codezero.errors import StateError
from codezero.runtime.state import holder, locked_state
from codezero.views.health import check
from tests.processes import held
from tests.swarm_folder import solver


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def finished(folder, number, seconds_ago):
    checkpoint = folder / "checkpoints" / f"round-{number:08d}"
    checkpoint.mkdir(parents=True)
    age(checkpoint, seconds_ago)


def test_the_holder_of_a_folder_is_known_while_it_lives(tmp_path):
    assert holder(tmp_path) is None
    with held(tmp_path) as pid:
        assert holder(tmp_path) == pid
        assert holder(tmp_path, "swarm") is None
    assert holder(tmp_path) is None
    with locked_state(tmp_path):  # asking has left the folder free
        pass


def test_a_lock_file_whose_process_id_went_to_another_program_holds_nothing(tmp_path):
    (tmp_path / "node.lock").write_text(str(os.getpid()))
    assert holder(tmp_path) is None


def test_a_node_of_another_container_is_held_by_its_lock_whatever_its_process_id_is_here(tmp_path, monkeypatch):
    with held(tmp_path) as pid:
        monkeypatch.setattr(psutil, "pid_exists", lambda _: False)
        assert holder(tmp_path) is None
        mounted = SimpleNamespace(f_flag=os.ST_RDONLY)
        monkeypatch.setattr(os, "fstatvfs", lambda _: mounted)
        assert holder(tmp_path) == pid
    assert holder(tmp_path) is None


@pytest.mark.parametrize("text", ["", "no number", "999999999999999999999"])
def test_a_lock_file_without_a_process_id_holds_nothing(tmp_path, text):
    (tmp_path / "node.lock").write_text(text)
    assert holder(tmp_path) is None


@pytest.mark.parametrize("inner", ["", "proposer", "verifier"])
def test_a_node_that_has_just_started_or_finished_something_is_well(tmp_path, inner):
    folder = tmp_path / inner
    with held(folder) as pid:
        (line,) = check([tmp_path], 100)
        assert line.startswith(f"the node in {folder} (process {pid}) went on ")
        age(folder / "node.lock", 500)
        finished(folder, 1, 300)
        finished(folder, 2, 50)
        assert check([tmp_path, tmp_path / "elsewhere"], 100) == [
            f"the node in {folder} (process {pid}) went on 50 s ago"
        ]


def test_a_round_counts_as_work_before_it_is_saved(tmp_path):
    node = tmp_path / "node-1"
    logs = solver(node, 1)
    with held(node / "state"):
        age(node / "state" / "node.lock", 500)
        age(logs / "rounds.jsonl", 50)
        assert check([node / "state"], 100)[0].endswith("went on 50 s ago")


def test_a_node_that_has_finished_nothing_for_long_is_not_well(tmp_path):
    with held(tmp_path):
        age(tmp_path / "node.lock", 500)
        finished(tmp_path, 1, 200)
        with pytest.raises(StateError, match="has finished nothing for 200 s, more than 100 s: see its log"):
            check([tmp_path], 100)


def test_a_node_that_is_not_there_is_not_well_whatever_it_did_last(tmp_path):
    finished(tmp_path, 1, 1)
    with pytest.raises(StateError, match=f"no node runs in {tmp_path} or elsewhere: start it"):
        check([tmp_path, tmp_path.__class__("elsewhere")], 100)


@pytest.mark.parametrize("name", ["swarm", "launcher"])
def test_a_swarm_is_as_well_as_the_slowest_of_its_nodes_that_run(tmp_path, name):
    slow, proposer, ended = (tmp_path / at for at in ("node-1/state", "proposer-1/state/proposer", "node-2/state"))
    with held(tmp_path, name), held(slow) as pid, held(proposer):
        age(slow / "node.lock", 500)
        finished(slow, 7, 300)
        finished(ended, 7, 400)
        finished(proposer, 3, 20)
        assert len(check([tmp_path], 350)) == 2
        with pytest.raises(StateError, match=rf"the node in {slow} \(process {pid}\) has finished nothing for 300 s"):
            check([tmp_path], 100)


def test_nodes_of_a_swarm_that_outlive_its_launcher_are_found(tmp_path):
    with held(tmp_path, "swarm"), held(tmp_path / "node-1" / "state") as pid:
        (tmp_path / "swarm.lock").write_text("999999999")  # the launcher was killed, the nodes hold its lock
        assert [f"(process {pid})" in line for line in check([tmp_path], 100)] == [True]


@pytest.mark.parametrize("name", ["swarm", "launcher"])
def test_a_swarm_of_which_no_node_runs_has_until_one_begins(tmp_path, name):
    with held(tmp_path, name):
        age(tmp_path / f"{name}.lock", 500)
        finished(tmp_path / "node-1" / "state", 7, 300)
        finished(tmp_path / "proposer-1" / "state" / "proposer", 3, 20)
        assert check([tmp_path], 100)[0].endswith("went on 20 s ago")
        with pytest.raises(StateError, match=f"the {name} in"):
            check([tmp_path], 10)


def test_the_exit_code_says_it_too(tmp_path, capsys):
    assert main(["health", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: no node runs in {tmp_path}: start it, or name its state folder\n"
    with held(tmp_path):
        assert main(["health", str(tmp_path), "--within", "5m"]) == 0
        age(tmp_path / "node.lock", 500)
        assert main(["health", str(tmp_path), "--within", "5m"]) == 1
