import dataclasses
import json
import os

from codezero.observe import groups_file
from codezero.observe.groups_file import GroupsFile
from codezero.types import RoundId
from codezero.views.groups import GroupsIndex
from tests.builders import rollout, scored, task
from tests.fakes import files_of_at_most


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_round_is_a_line_with_every_solution_and_why(tmp_path):
    own = scored([rollout(text="a"), rollout(text="b"), rollout(text="c")], (1.0, 0.5, None))
    peer = scored([rollout(text="<script>"), rollout()], (0.0, 0.0), external=True, peer_id="Qm2", of=task("Do it."))
    peer = dataclasses.replace(peer, rewards=())  # the evaluator was away
    GroupsFile(tmp_path / "groups.jsonl").append(RoundId(number=7), [own, peer], [own])
    (line,) = lines(tmp_path / "groups.jsonl")
    assert line["round"] == 7
    first, second = line["groups"]
    assert (first["external"], first["trained"], second["external"], second["trained"]) == (False, True, True, False)
    assert [r["text"] for r in first["rollouts"]] == ["a", "b", "c"]
    assert [r["reward"] for r in first["rollouts"]] == [1.0, 0.5, None]
    assert (first["rollouts"][2]["outcome"], first["rollouts"][2]["p_correct"]) == ("unsure", 0.6)
    assert [r["reward"] for r in second["rollouts"]] == [None, None]
    assert second["rollouts"][0]["text"] == "<script>"
    assert (second["peer_id"], second["task"]["question"]) == ("Qm2", "Do it.")


def test_long_and_broken_text_is_cut_and_escaped(tmp_path):
    texts = ["x" * 20_005, "\ud800"]
    group = scored([rollout(text=text) for text in texts], (0.0, 0.0))
    GroupsFile(tmp_path / "groups.jsonl").append(RoundId(number=1), [group], [])
    (line,) = lines(tmp_path / "groups.jsonl")
    found = [r["text"] for r in line["groups"][0]["rollouts"]]
    assert found == ["x" * 20_000 + "\n[5 more characters]", "\\ud800"]


def test_two_files_of_a_bounded_size_are_kept(tmp_path, monkeypatch):
    group = scored([rollout(text="x" * 1000)], (1.0,))
    monkeypatch.setattr(groups_file, "MAX_FILE_BYTES", 5_000)
    file = GroupsFile(tmp_path / "groups.jsonl")
    for number in range(12):
        file.append(RoundId(number=number), [group], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.1.jsonl", "groups.jsonl"]
    assert all(path.stat().st_size <= 5_000 for path in tmp_path.iterdir())
    assert lines(tmp_path / "groups.jsonl")[-1]["round"] == 11


def test_a_round_that_a_full_disk_does_not_take_costs_no_other(tmp_path):
    file, group = GroupsFile(tmp_path / "groups.jsonl"), scored([rollout(text="x" * 9000)], (1.0,))
    file.append(RoundId(number=1), [], [])
    with files_of_at_most(5000):
        file.append(RoundId(number=2), [group], [])
    file.append(RoundId(number=3), [group], [])
    assert [line["round"] for line in lines(tmp_path / "groups.jsonl")] == [1, 3]


def test_a_round_that_a_kill_left_torn_costs_no_other(tmp_path):
    file, path = GroupsFile(tmp_path / "groups.jsonl"), tmp_path / "groups.jsonl"
    for number in (1, 2):
        file.append(RoundId(number=number), [], [])
    os.truncate(path, path.stat().st_size - 5)
    for number in (2, 3):  # the second is played again
        file.append(RoundId(number=number), [], [])
    assert sorted(GroupsIndex(tmp_path).rounds()) == [1, 2, 3]


def test_a_disk_that_refuses_is_warned_of_once(tmp_path, caplog):
    file = GroupsFile(tmp_path / "missing" / "groups.jsonl")
    for number in range(3):
        file.append(RoundId(number=number), [], [])
    assert len(caplog.records) == 1
