import dataclasses
import json
import os

import pytest
from starlette.testclient import TestClient

from codezero.errors import StateError
from codezero.observe.groups_file import GroupsFile
from codezero.observe.report_file import ReportFile
from codezero.observe.status import StatusFile, new_status
from codezero.runtime.state import locked_state
from codezero.types import RoundId
from codezero.views.report import summary
from codezero.views.runs import find_runs
from codezero.views.web.app import make_app
from codezero.views.web.source import WatchedFolders
from tests.builders import rollout, scored
from tests.unit.observe import test_batches, test_cases, test_monitor


def node(folder, role="solver", logs="logs"):
    """The folder of a node that has run."""
    state = folder / "state" / ("" if role == "solver" else role)
    (folder / logs).mkdir(parents=True, exist_ok=True)
    with locked_state(state), StatusFile(state, new_status(role, state, folder / logs)):
        pass
    return folder / logs


def append(path, *lines):
    with path.open("ab") as file:
        file.writelines(lines)


def line(report):
    return json.dumps(dataclasses.asdict(report)).encode() + b"\n"


def test_a_swarm_folder_has_a_run_for_each_node_by_name(tmp_path):
    roles = {"node-1": "solver", "node-2": "solver", "proposer-1": "proposer", "verifier": "verifier"}
    for name, role in roles.items():
        node(tmp_path / name, role)
    (tmp_path / "bootnode").mkdir()
    found = find_runs(tmp_path)
    assert {run.name: run.role for run in found} == roles
    assert [run.log_dir.resolve() for run in found] == [tmp_path / run.name / "logs" for run in found]


def test_a_state_folder_may_have_both_a_solver_and_a_proposer(tmp_path):
    node(tmp_path, "solver", "a")
    node(tmp_path, "proposer", "b")
    solver, proposer = find_runs(tmp_path / "state")
    assert (solver.role, solver.log_dir.resolve(), proposer.role, proposer.log_dir.resolve()) == (
        *("solver", tmp_path / "a"),
        *("proposer", tmp_path / "b"),
    )


def test_a_folder_without_a_node_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(StateError, match="give the state folder"):
        find_runs(tmp_path)


def test_a_folder_that_cannot_be_read_is_refused_in_one_line(tmp_path):
    with pytest.raises(StateError, match=r"cannot read /.*: File name too long; ask as the user who runs the node"):
        find_runs(tmp_path / ("x" * 300))  # another user's folder is not one for root, who may run this


def test_whether_a_node_runs_is_asked_of_its_lock_and_not_of_what_it_wrote(tmp_path):
    node(tmp_path)
    (run,) = find_runs(tmp_path / "state")
    assert run.pid() is None
    with locked_state(tmp_path / "state"):
        assert run.pid() == os.getpid()


def test_reports_grow_with_the_file_and_a_torn_or_foreign_line_is_left_out(tmp_path):
    logs = node(tmp_path)
    (run,) = find_runs(tmp_path / "state")
    assert run.reports() == []
    first, second = (test_monitor.report(number) for number in (1, 2))
    hostile = b"[" * 100_000 + b"\n" + b'{"round": "x"}\n\xff\n{"round": 1, "skipped": "\xff"}\n'
    append(logs / "rounds.jsonl", line(first), hostile, line(second)[:-20])
    assert run.reports() == [first]
    append(logs / "rounds.jsonl", line(second)[-20:])
    assert run.reports() == [first, second]


def test_a_file_that_was_replaced_is_read_anew(tmp_path):
    logs = node(tmp_path)
    (run,) = find_runs(tmp_path / "state")
    append(logs / "rounds.jsonl", *[line(test_monitor.report(number)) for number in (1, 2, 3)])
    assert len(run.reports()) == 3
    append(logs / "new", line(test_monitor.report(9)))
    os.replace(logs / "new", logs / "rounds.jsonl")
    assert [report.round for report in run.reports()] == [9]


def test_rounds_that_a_restarted_node_plays_again_are_read_anew(tmp_path):
    logs = node(tmp_path)
    (run,) = find_runs(tmp_path / "state")
    append(logs / "rounds.jsonl", *[line(test_monitor.report(number)) for number in (1, 2, 3)])
    assert [report.num_tokens for report in run.reports()][1:] == [test_monitor.report(1).num_tokens] * 2
    file = ReportFile(logs / "rounds.jsonl", "round")
    file.resume(test_monitor.report(1))
    for number in (2, 3):
        file.append(test_monitor.report(number, num_tokens=10**9))
    assert [report.num_tokens for report in run.reports()][1:] == [10**9] * 2


def test_reports_of_a_version_that_did_not_note_the_time_are_read(tmp_path):
    logs = node(tmp_path)
    values = dataclasses.asdict(test_monitor.report(1))
    del values["finished_at_s"]
    append(logs / "rounds.jsonl", json.dumps(values).encode() + b"\n")
    (run,) = find_runs(tmp_path / "state")
    assert run.reports()[0].finished_at_s == 0.0


def test_batches_of_a_proposer(tmp_path):
    logs = node(tmp_path, "proposer")
    append(logs / "proposals.jsonl", line(test_batches.report(3)))
    (run,) = find_runs(tmp_path / "state")
    assert [batch.batch for batch in run.batches()] == [3]


def test_a_round_that_was_played_twice_shows_as_it_went_the_last_time(tmp_path):
    logs = node(tmp_path)
    file = GroupsFile(logs / "groups.jsonl")
    for number, text in ((1, "old"), (1, "new"), (2, "next")):
        file.append(RoundId(number=number), [scored([rollout(text=text)], (1.0,))], [])
    (run,) = find_runs(tmp_path / "state")
    assert [(one.round, one.groups[0].rollouts[0].text) for one in run.groups()] == [(1, "new"), (2, "next")]


def test_groups_are_found_in_a_file_that_got_the_inode_of_an_earlier_one(tmp_path):
    logs = node(tmp_path)
    (run,) = find_runs(tmp_path / "state")
    path = logs / "groups.jsonl"
    GroupsFile(path).append(RoundId(number=1), [scored([rollout()], (1.0,))], [])
    assert list(run.rounds_with_groups()) == [1]
    inode = path.stat().st_ino
    path.write_bytes(b"")  # as a new file of this inode
    for number in (11, 12):
        GroupsFile(path).append(RoundId(number=number), [scored([rollout()], (1.0,))], [])
    assert path.stat().st_ino == inode
    assert list(run.rounds_with_groups()) == [11, 12]


def test_nodes_that_share_a_folder_of_logs_have_what_they_wrote_alone(tmp_path):
    for role in ("solver", "proposer", "verifier"):
        logs = node(tmp_path, role)
    append(logs / "rounds.jsonl", line(test_monitor.report(1)))
    append(logs / "proposals.jsonl", line(test_batches.report(3)))
    append(logs / "cases.jsonl", line(test_cases.report(5)))
    GroupsFile(logs / "groups.jsonl").append(RoundId(number=1), [scored([rollout()], (1.0,))], [])
    solver, proposer, verifier = find_runs(tmp_path / "state")
    assert ([one.round for one in solver.reports()], solver.batches(), solver.cases()) == ([1], [], [])
    assert (proposer.reports(), [one.batch for one in proposer.batches()], proposer.cases()) == ([], [3], [])
    assert (verifier.reports(), verifier.batches(), [one.batch for one in verifier.cases()]) == ([], [], [5])
    assert [seen.round for seen in solver.groups()] == [1]
    for other in (proposer, verifier):
        assert (other.groups(), other.rounds_with_groups(), other.groups_of(1)) == ([], {}, None)
        assert summary.gather(other).examples is None
    api = TestClient(make_app(WatchedFolders([tmp_path / "state"])), base_url="http://localhost")
    assert [len(api.get(f"/api/nodes/{key}/rounds").json()) for key in ("solver", "proposer", "verifier")] == [1, 0, 0]
    assert api.get("/api/nodes/proposer/rounds/1/groups").status_code == 404


def test_a_folder_that_was_moved_still_finds_its_logs(tmp_path):
    logs = node(tmp_path / "before")
    append(logs / "rounds.jsonl", line(test_monitor.report(1)))
    (tmp_path / "before").rename(tmp_path / "after")
    (run,) = find_runs(tmp_path / "after" / "state")
    assert len(run.reports()) == 1


def test_a_ledger_that_nodes_share_beside_their_folders_is_no_node(tmp_path):
    node(tmp_path / "node-1")
    (tmp_path / "ledger.sqlite").touch()
    assert [run.name for run in find_runs(tmp_path)] == ["node-1"]
