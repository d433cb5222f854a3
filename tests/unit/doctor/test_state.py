"""The state folder, the node's key, processes left behind, edited settings, and what the last node noted."""

import dataclasses
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from codezero.doctor import identity, installation, processes, state_folder
from codezero.doctor.processes import Running
from codezero.identity import keyfile
from codezero.identity.key import Identity, save
from codezero.launch import configs
from codezero.observe.status import new_status
from codezero.runtime import state
from codezero.runtime.console import Console
from tests.processes import wait_until
from tests.swarm_folder import proposer, verifier
from tests.unit.doctor.cases import case_of, told


def checkpoint(folder, number, size=5, said=5, into="state"):
    path = folder / into / "checkpoints" / f"round-{number:08d}"
    path.mkdir(parents=True)
    (path / "learner.pt").write_bytes(b"x" * size)
    (path / "manifest.json").write_text(json.dumps({"files": {"learner.pt": {"bytes": said, "crc32": 1}}}))
    return path


def test_a_folder_that_is_not_there_yet(tmp_path):
    (finding,) = state_folder.check(case_of(tmp_path))
    assert "is not there yet" in finding.found
    assert not (tmp_path / "state").exists()


def test_a_folder_made_with_another_model(tmp_path):
    (tmp_path / "state").mkdir()
    state.bind_settings(tmp_path / "state", {"model.name": "Qwen/other", "train.method": "full"})
    (fault,) = told(state_folder.check(case_of(tmp_path)), "error")
    assert "was made with model.name=Qwen/other, not Qwen2.5-Coder-0.5B-Instruct" in fault
    same = case_of(tmp_path, "model.name=Qwen/other", "train.method=full")
    fine = told(state_folder.check(same), "ok")
    assert "state: it was made with model.name=Qwen/other, train.method=full |  | " in fine
    other = case_of(tmp_path, "model.name=Qwen/other")
    assert "was made with train.method=full, not lora" in told(state_folder.check(other), "error")[0]


def test_settings_that_are_no_settings(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "settings.json").write_text("{")
    assert "cannot read" in told(state_folder.check(case_of(tmp_path)), "error")[0]


def test_a_folder_in_use_is_told_with_who_has_it(tmp_path):
    with state.locked_state(tmp_path / "state"):
        held = told(state_folder.check(case_of(tmp_path)), "info")
        assert f"(process {os.getpid()})" in held[0]
    assert "is free" in told(state_folder.check(case_of(tmp_path)), "info")[0]


def test_a_torn_checkpoint_is_skipped_for_an_older_whole_one(tmp_path):
    checkpoint(tmp_path, 7)
    checkpoint(tmp_path, 8, size=3)
    (tmp_path / "state" / "checkpoints" / ".saving-00000009").mkdir()
    findings = list(state_folder.check(case_of(tmp_path)))
    assert "round-00000008: learner.pt has 3 bytes, the manifest says 5" in told(findings, "warning")[0]
    assert "the newest whole one is round-00000007, saved " in told(findings, "ok")[0]
    assert any("1 incomplete, of an interrupted save" in text for text in told(findings, "info"))


@pytest.mark.parametrize("manifest", ["", "[]", '{"files": 3}', '{"files": {"a": {}}}', "[" * 5000, None])
def test_checkpoints_that_are_all_damaged(tmp_path, manifest):
    path = checkpoint(tmp_path, 7) / "manifest.json"
    path.unlink() if manifest is None else path.write_text(manifest)
    (fault,) = told(state_folder.check(case_of(tmp_path)), "error")
    assert "all 1 are damaged (round-00000007: " in fault
    assert "the node stops" in fault


def test_a_damaged_ledger(tmp_path):
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "ledger.sqlite") as db:
        db.execute("CREATE TABLE t (x)")
        db.executemany("INSERT INTO t VALUES (?)", [("y" * 500,)] * 100)
    db.close()
    assert not told(state_folder.check(case_of(tmp_path)), "error")
    with (tmp_path / "state" / "ledger.sqlite").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    assert "is damaged: " in told(state_folder.check(case_of(tmp_path)), "error")[0]


def test_a_ledger_that_cannot_be_opened_is_not_damaged(tmp_path):
    (tmp_path / "state" / "outbox.sqlite").mkdir(parents=True)
    (fault,) = told(state_folder.check(case_of(tmp_path)), "error")
    assert f"cannot look at {tmp_path / 'state' / 'outbox.sqlite'}: " in fault
    assert "readable and writable for the user of the node" in fault
    assert "move it away" not in fault


def last(tmp_path, holder=None, later_s=60.0, **changes):
    found = dataclasses.replace(new_status("solver", tmp_path, tmp_path), stage="learn", round=5, **changes)
    return list(state_folder.last_run(found, holder, found.updated_at_s + later_s))


def test_a_node_that_was_killed_has_noted_no_end(tmp_path):
    gib = 2**30
    (fault,) = told(last(tmp_path, rss_bytes=12 * gib, planned_bytes=10 * gib), "warning")
    assert "solver: ended 1 min ago without a word, learning in round 5, with 12.0 GiB of 10.0 GiB planned" in fault
    assert "killed: memory ran out" in fault


def test_how_a_node_ended_by_its_own_word(tmp_path):
    (fault,) = told(last(tmp_path, ended="RuntimeError: x"), "warning")
    assert "ended 1 min ago: RuntimeError: x, learning in round 5" in fault
    assert "stopped 1 min ago" in told(last(tmp_path, ended="stopped"), "info")[0]


def test_a_node_that_hangs(tmp_path):
    me = os.getpid()
    assert "no sign of life for 10 min" in told(last(tmp_path, me, later_s=600.0), "warning")[0]
    assert told(last(tmp_path, me), "ok")
    (another,) = told(last(tmp_path, me + 1), "ok")
    assert another == "node: solver: running, and has not said yet what it does |  | "


def test_a_proposer_and_a_test_writer_are_looked_at_as_well(tmp_path):
    proposer(tmp_path, 3)
    verifier(tmp_path, 4)
    checkpoint(tmp_path, 4, into="state/verifier")
    findings = list(state_folder.check(case_of(tmp_path)))
    assert {one.name for one in findings} == {
        *("proposer's state", "proposer's checkpoints", "verifier's state", "verifier's checkpoints", "node")
    }  # no solver has run
    (whole,) = told(findings, "ok")
    assert whole.startswith("verifier's checkpoints: the newest whole one is round-00000004")
    assert any("node: proposer: stopped" in text and "in batch 3" in text for text in told(findings, "info"))


def test_who_the_node_is(tmp_path):
    made = Identity.generate()
    save(made, tmp_path / "swarm.pem")
    findings = list(identity.check(case_of(tmp_path, "swarm=native")))
    assert f"peer {made.peer_id} (" in told(findings, "ok")[0]
    assert f"codezero identity export backup.pem --path {tmp_path / 'swarm.pem'}" in told(findings, "info")[0]
    (tmp_path / "swarm.pem").chmod(0o644)
    assert "is open to other users" in told(identity.check(case_of(tmp_path, "swarm=native")), "warning")[0]


def test_a_key_that_is_none(tmp_path):
    (tmp_path / "swarm.pem").write_bytes(b"-----BEGIN")
    assert "is not a node's key" in told(identity.check(case_of(tmp_path, "swarm=native")), "error")[0]
    (tmp_path / "swarm.pem").unlink()
    (tmp_path / "swarm.pem").symlink_to("nowhere")
    assert "cannot read the node's key" in told(identity.check(case_of(tmp_path, "swarm=native")), "error")[0]


def test_a_key_that_is_not_there_or_not_needed(tmp_path):
    (found,) = told(identity.check(case_of(tmp_path, "swarm=native")), "info")
    assert "there is no key" in found
    assert f"codezero identity import BACKUP --path {tmp_path / 'swarm.pem'}`" in found
    assert "none needed" in told(identity.check(case_of(tmp_path, "swarm=alone")), "info")[0]
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_another_live_node_uses(tmp_path):
    made = Identity.generate()
    save(made, tmp_path / "swarm.pem")
    case = case_of(tmp_path, "swarm=native")
    with keyfile.live_identity(made, tmp_path / "swarm.pem"):
        assert f"another live node (process {os.getpid()}) uses the key" in told(identity.check(case), "error")[0]
        with state.locked_state(tmp_path / "state"):  # it is the node that is examined
            assert not told(identity.check(case), "error")
    assert not told(identity.check(case), "error")


def test_a_daemon_whose_node_was_killed_is_found(tmp_path):
    """A real process, in the daemon's name, whose parent has ended."""
    start = f"subprocess.Popen(['p2pd', '300'], executable={shutil.which('sleep')!r}, stdout=subprocess.DEVNULL)"
    code = f"import os, subprocess; print({start}.pid, flush=True); os._exit(9)"
    pid = int(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True).stdout)
    try:
        found = wait_until(
            lambda: [text for text in told(processes.check(case_of(tmp_path)), "warning") if str(pid) in text]
        )
        assert f"a p2p daemon whose node has ended: process {pid} (p2pd 300)" in found[0]
        assert f"kill {pid}" in found[0]
    finally:
        os.kill(pid, signal.SIGKILL)


PYTHON = ("/opt/venv/bin/python", "-m", "codezero", "run", "preset=local")
JUDGE = ("python", "-m", "codezero.evaluate.backends.llama_cpp_server")


@pytest.mark.parametrize(
    ("command", "parent_pid", "parent", "expected"),
    [
        (("/x/p2pd", "-listen"), None, (), True),
        (("/x/p2pd", "-listen"), 1, ("/sbin/init",), True),
        (("/x/p2pd", "-listen"), 1, ("sleep", "infinity"), True),
        (("/x/p2pd", "-listen"), 900, ("/lib/systemd/systemd", "--user"), True),
        (("/x/p2pd", "-listen"), 5, PYTHON, False),
        (("/x/p2pd", "-listen"), 1, PYTHON, False),
        (("/x/p2pd", "-listen"), 5, ("bash",), False),
        (JUDGE, None, (), True),
        (JUDGE, 5, PYTHON, False),
        (("next-server (v15)",), None, (), True),
        (("vim", "-o", "a", "b", "p2pd"), None, (), False),
        (("tail", "p2pd.log"), None, (), False),
        ((), None, (), False),
    ],
)
def test_what_counts_as_left_behind(tmp_path, monkeypatch, command, parent_pid, parent, expected):
    one = Running(pid=77, command=command, parent_pid=parent_pid, parent_command=parent, rss_bytes=1)
    monkeypatch.setattr(processes, "own_processes", lambda: [one])
    assert bool(told(processes.check(case_of(tmp_path)), "warning")) is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (PYTHON, True),
        (("/v/bin/python", "/v/bin/codezero", "propose"), True),
        (("/v/bin/python", "/v/bin/codezero", "verify"), True),
        (("/v/bin/python", "/v/bin/codezero", "doctor"), False),
        (("python", "-m", "codezero"), False),
        ((), False),
    ],
)
def test_which_processes_are_nodes(command, expected):
    assert processes.is_node(command) is expected


def test_edited_settings_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", str(tmp_path / "configs"))
    configs.report_or_restore_edits({}, Console())
    assert "are as shipped" in told(installation.check_files(case_of(tmp_path)), "ok")[0]
    node = tmp_path / "configs" / "node.yaml"
    node.write_text(node.read_text().replace("seed: 0", "seed: 9"))
    (tmp_path / "configs" / "preset" / "local.yaml").unlink()
    (drift,) = told(installation.check_files(case_of(tmp_path)), "info")
    assert "2 in " in drift
    assert "node.yaml: seed: 9; preset/local.yaml: missing" in drift
    assert "CODEZERO_RESET_CONFIG=1" in drift
