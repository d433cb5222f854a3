"""`codezero status`: for people, for programs, and for both without harm."""

import dataclasses
import json
import os
import subprocess
import sys
import time

import msgspec
import pytest

from codezero import __version__
from codezero.cli import main
from codezero.cli.status import NOT_RUNNING
from codezero.observe.status import StatusFile, new_status
from codezero.runtime.state import locked_state
from codezero.views.summary import Document
from tests.unit.observe import test_batches, test_monitor

NODE = {"peer_id": "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N", "model": "tiny", "method": "full"}
HOSTILE = "\x1b[2J\x9b31m\u202e\x7f[red]</script>\nforged 1"


def node(folder, role="solver", reports=(), log="", **changes):
    """The folder of a node that has run; returns its state folder."""
    state, logs = folder / "state" / ("proposer" if role == "proposer" else ""), folder / "logs"
    logs.mkdir(parents=True)
    with locked_state(state), StatusFile(state, new_status(role, state, logs)) as file:
        file.update(**{**NODE, **changes})
    name = "proposals.jsonl" if role == "proposer" else "rounds.jsonl"
    (logs / name).write_text("".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in reports))
    (logs / "swarm.log").write_text(log)
    return folder / "state"


def status(capsys, *arguments):
    code = main(["status", *map(str, arguments)])
    return code, capsys.readouterr()


def test_a_stopped_node_in_lines(tmp_path, capsys, utc):
    reports = [
        test_monitor.report(number, reward_mean=number / 10, network="2 peers in sight") for number in range(1, 7)
    ]
    log = (
        "2026-11-21T10:00:00.123Z INFO codezero: fine\n2026-11-21T10:00:01.123Z WARNING codezero.x: disk nearly full\n"
    )
    folder = node(tmp_path, reports=reports, log=log, group_size=4, round=6, policy_version=6)
    code, shown = status(capsys, folder)
    assert code == NOT_RUNNING
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert lines[:2] == [
        "thorny fishy meerkat codezero 0.1.0 solver".replace("0.1.0", __version__),
        f"{NODE['peer_id']} tiny, full ! stopped",
    ]
    assert lines[2:5] == ["Round 6", "stopped 0 s ago", "the same command continues where it stopped"]
    for line in (
        "Learns Not measured: no probe has ended yet; a run of fewer than 20 rounds takes none, nor does "
        "probe.share=0.",
        "Learned policy version 6 loss -0.0123 grad 1.5",
        "Swarm 2 peers in sight local 2 external 0 dropped 1 zero_advantage",
        "Warning 2026-11-21 10:00:01 WARNING: disk nearly full",
    ):
        assert line in lines
    assert any(line.startswith("Reward +0.60 ") for line in lines)


def test_a_running_node_says_its_process_and_what_it_is_at(tmp_path, capsys):
    now_s = time.time()
    folder = node(
        tmp_path,
        **{"round": 7, "stage": "solve", "stage_began_at_s": now_s - 10, "done": 1, "total": 2, "ended": ""},
        usual_s={"solve": 20.0, "learn": 50.0},
        rss_bytes=2**30,
        planned_bytes=2**31,
    )
    with locked_state(folder):
        code, shown = status(capsys, folder)
    assert code == 0
    assert f"process {os.getpid()}, up " in shown.out
    assert "Round      7  writing solutions  " in shown.out
    assert " 1/2  about 1m0" in shown.out
    assert " of 2.0 GiB planned" in shown.out


def test_a_node_that_hangs_is_told_so_and_no_time_left_is_promised(tmp_path, capsys):
    folder = node(
        tmp_path,
        **{"round": 7, "stage": "solve", "stage_began_at_s": time.time() - 10, "done": 1, "total": 2, "ended": ""},
        usual_s={"solve": 20.0},
    )
    noted = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**noted, "updated_at_s": time.time() - 100}))
    with locked_state(folder):
        code, shown = status(capsys, folder)
    assert code == 0  # there is a process
    assert "no sign of life for 1 min" in shown.out
    assert "it hangs, is suspended" in shown.out
    assert " left" not in shown.out


def test_a_proposer_says_its_level_and_success(tmp_path, capsys):
    code, shown = status(capsys, node(tmp_path, "proposer", [test_batches.report(3)]))
    assert code == NOT_RUNNING
    assert "Level      2 easy  start" in shown.out
    assert "1 beginner  0.90 " in shown.out


def test_of_a_swarm_folder_each_node_has_a_paragraph_and_all_must_run(tmp_path, capsys):
    first, second = node(tmp_path / "node-1"), node(tmp_path / "node-2")
    with locked_state(first):
        code, shown = status(capsys, tmp_path)
        assert code == NOT_RUNNING
        with locked_state(second):
            assert status(capsys, tmp_path)[0] == 0
    assert [line[:7] for line in shown.out.splitlines() if line.startswith("node-")] == ["node-1:", "node-2:"]


def test_no_node_there_is_an_error_that_says_what_to_give(tmp_path, capsys, monkeypatch):
    code, shown = status(capsys, tmp_path)
    assert code == 1
    assert "give the state folder of one" in shown.err
    monkeypatch.chdir(tmp_path)
    assert status(capsys)[0] == 1
    node(tmp_path)
    assert status(capsys)[0] == NOT_RUNNING  # the usual place


def test_json_is_one_document_of_the_schema(tmp_path, capsys):
    reports = [test_monitor.report(number) for number in range(1, 31)]
    code, shown = status(capsys, node(tmp_path, reports=reports, round=30), "--json")
    assert code == NOT_RUNNING
    assert shown.out.count("\n") == 1
    document = msgspec.json.decode(shown.out, type=Document, strict=True)
    (run,) = document.runs
    assert (document.format, run.name, run.role, run.running, run.pid) == (1, "solver", "solver", False, None)
    assert run.animal_name == "thorny fishy meerkat"
    assert [report.round for report in run.rounds] == list(range(21, 31))
    assert run.status.round == 30


FIELDS = {
    *("name", "role", "folder", "log_dir", "running", "pid", "animal_name", "status", "left_s", "rounds", "batches"),
    *("cases", "learning", "ledger", "markets", "last_warning", "problems"),
}


def test_json_keeps_its_fields(tmp_path, capsys):
    """A field that goes or changes its meaning raises codezero.views.summary.FORMAT."""
    _, shown = status(capsys, node(tmp_path), "--json")
    document = json.loads(shown.out)
    assert set(document) == {"format", "at_s", "runs"}
    assert set(document["runs"][0]) == FIELDS


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_text_of_peers_harms_no_terminal_and_forges_no_line(tmp_path, capsys, how):
    hostile = test_monitor.report(1, network=HOSTILE, skipped=HOSTILE, dropped={HOSTILE: 1}, judge=HOSTILE)
    log = f"2026-11-21T10:00:01.123Z WARNING codezero.x: {HOSTILE}".replace("\n", " ") + "\n"
    folder = node(tmp_path, reports=[hostile], log=log, model=HOSTILE, peer_id=HOSTILE, ended=HOSTILE)
    _, shown = status(capsys, folder, *how)
    assert not set(shown.out) & set("\x1b\x9b\u202e\x7f")
    assert not any(line.startswith("forged") for line in shown.out.splitlines())
    if how:
        assert json.loads(shown.out)["runs"][0]["rounds"][0]["network"] == HOSTILE


def test_a_damaged_ledger_costs_its_lines_only_and_is_named(tmp_path, capsys):
    folder = node(tmp_path)
    (folder / "ledger.sqlite").write_text("hello " * 1000)
    code, shown = status(capsys, folder)
    assert code == NOT_RUNNING
    assert shown.out.startswith("thorny fishy meerkat")
    assert "earned" not in shown.out  # 0 would be a guess
    assert f"problem cannot read the ledger {folder}/ledger.sqlite: file is not a database" in shown.out


def test_a_long_run_is_read_from_its_end(tmp_path, capsys):
    reports = [test_monitor.report(number) for number in range(1, 3001)]
    code, shown = status(capsys, node(tmp_path, reports=reports), "--json")
    assert code == NOT_RUNNING
    assert json.loads(shown.out)["runs"][0]["rounds"][-1]["round"] == 3000


def test_watching_needs_a_terminal(tmp_path, capsys):
    code, shown = status(capsys, node(tmp_path), "--watch")
    assert code == 1
    assert "--watch needs a terminal" in shown.err


def test_no_heavy_module_is_needed(tmp_path):
    """So that it answers at once."""
    code = (
        "import sys; from codezero.cli import main; main(sys.argv[1:]); "
        "print(sorted({'torch', 'transformers', 'hivemind', 'web3', 'numpy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, "status", str(node(tmp_path))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith("[]\n")
