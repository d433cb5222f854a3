import json
import subprocess
from types import SimpleNamespace

import pytest

from benchmarks import evening, harms
from benchmarks.evening import HARMS, SETTLED, TARGETS, Evening, lives, table
from tests.unit.benchmarks.builders import result

MINUTES = 4 * SETTLED


def counts(memory, **more):
    return {
        "minutes": 30.0,
        "harms": [],
        "samples": [{"node-1": (7, mib, 20)} for mib in memory],
        "finished": {"node-1": 12},
        "lost": [],
        "points": {"node-1": {"earned": 3.5, "credited": 3.5, "off": 0}},
        "log_bytes": {"swarm.log": 2_000_000},
        **more,
    }


def shown(*pieces):
    numbered = {f"piece {number}": found for number, found in enumerate(pieces, 1)}
    return table({"evening": result(numbered, targets=TARGETS)})


def test_memory_is_compared_within_each_long_life_of_a_process():
    half = [1000 + 10 * minute for minute in range(MINUTES // 2)]
    started_again = counts([])
    started_again["samples"] = [{"node-1": (8, 2000, 20)}] * (MINUTES - 1)
    (life,) = lives({"1": counts(half), "2": counts(half), "3": started_again})
    assert (life.program, life.pieces, life.minutes) == ("node-1", ("1", "2"), MINUTES)
    assert (life.memory, life.files) == (0, 0)
    grown = counts([1000 + 10 * minute for minute in range(MINUTES)])
    grown["samples"] += [{"node-1": (8, 2000, 20)}] * MINUTES
    first, second = lives({"1": grown})
    assert first.memory > 0.05
    assert second.memory == 0


def test_what_did_not_go_on_and_what_was_lost_is_in_the_table():
    what = next(iter(HARMS))
    harms = [
        {"what": what, "after_s": 40, "said": {"node-2": "not running"}},
        {"what": what, "after_s": None, "said": {"node-2": "not running", "node-1": ""}},
    ]
    fine = shown(counts([1000] * MINUTES, harms=harms))
    assert f"| {what} | 2 | 1 | 40, at most 40 | not running |" in fine
    assert "| saved rounds lost | 0, at most 0: met |" in fine
    bad = shown(
        counts(
            [1000 + 10 * minute for minute in range(MINUTES)],
            lost=["node-1 round 3"],
            points={"node-1": {"earned": 3.5, "credited": 2.5, "off": 1}},
        )
    )
    assert "| saved rounds lost | 1, at most 0: **missed** |" in bad
    assert "| points lost or counted twice | 2.00, at most 0: **missed** |" in bad
    assert "at most 2 %: **missed**" in bad


def test_a_round_that_a_checkpoint_had_may_not_go_and_one_after_it_may(tmp_path):
    machine = SimpleNamespace(swarm=tmp_path)
    seen = Evening(machine)
    logs, checkpoints = tmp_path / "node-1" / "logs", tmp_path / "node-1" / "state" / "checkpoints"
    logs.mkdir(parents=True)

    def lose(rounds, newest):
        (logs / "rounds.jsonl").write_text("".join(json.dumps({"round": number}) + "\n" for number in rounds))
        for path in checkpoints.glob("*"):
            path.rmdir()
        (checkpoints / f"round-{newest:08}").mkdir(parents=True)
        return seen.saved_and_lost()

    assert lose([1, 2, 3], newest=2) == []
    assert lose([1, 2], newest=2) == []  # the third is played again after a kill
    assert lose([1], newest=2) == ["node-1 round 2"]
    assert lose([1], newest=1) == []
    assert lose([1], newest=0) == ["node-1 checkpoint 1, 0 is left"]


def test_what_runs_is_stopped_where_the_rest_cannot_start(tmp_path, monkeypatch):
    """A chain that gets no contract, for example, beside a command that has ended."""
    ended = subprocess.Popen(("true",))
    ended.wait()

    def start_chain(machine):
        machine._running.update(tick=ended, chain=chain)

    def deploy(machine, *arguments):
        raise SystemExit("cannot deploy")

    commands = []
    with subprocess.Popen(("sleep", "60"), start_new_session=True) as chain:
        monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command[0]))
        monkeypatch.setattr(harms.Machine, "_mount", lambda machine: None)
        monkeypatch.setattr(harms.Machine, "start_chain", start_chain)
        monkeypatch.setattr(harms.Machine, "_codezero", deploy)
        with pytest.raises(SystemExit, match="cannot deploy"), harms.Machine(tmp_path, ()):
            pass
        chain.kill()
    assert chain.returncode == -15
    assert commands == ["cc", "umount"]


def test_messages_are_told_alike_whatever_their_numbers_and_paths():
    run = {
        "running": True,
        "status": {"ledger": "", "updated_at_s": 100.0},
        "last_warning": {"at_s": 90.0, "text": "cannot write /a/b-1/c.pt: 3.5 GiB are needed"},
    }
    assert evening.trouble(run, 20.0) == "cannot write …: … GiB are needed"
    assert evening.trouble({**run, "status": {"ledger": "no answer from 0xab", "updated_at_s": 1}}, 20.0) == (
        "ledger: no answer from …"
    )
    assert evening.trouble({**run, "last_warning": {"at_s": -900.0, "text": "old"}}, 20.0) == ""
    assert evening.trouble({**run, "running": False}, 20.0) == "not running"


def test_points_of_a_node_whose_outbox_is_empty_are_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(evening, "read_pending", lambda path: SimpleNamespace(items=[], owed=[]))
    monkeypatch.setattr(evening, "read_view", lambda folder: SimpleNamespace(earned=2.5))
    points = Evening(SimpleNamespace(swarm=tmp_path, on_chain=lambda peers: []))._points()
    assert points == {name: {"earned": 2.5, "credited": 0, "off": 0} for name in evening.NODES}


def test_a_loss_of_points_is_counted_once_though_every_later_piece_has_it():
    lost = counts([1000], points={"node-1": {"earned": 3.5, "credited": 1.5, "off": 0}})
    assert "| points lost or counted twice | 2.00, at most 0: **missed** |" in shown(counts([1000]), lost, lost)
