import dataclasses
import io
import json
import os

import pytest

from codezero.errors import StateError
from codezero.identity.names import animal_name
from codezero.observe.monitor import RoundMonitor, round_line
from codezero.observe.status import StatusFile, new_status
from codezero.reports import RoundReport
from codezero.runtime.console import Console, printable


def report(number, **changes) -> RoundReport:
    base = RoundReport(
        round=number,
        policy_version=number,
        num_local_groups=2,
        num_external_groups=0,
        dropped={"zero_advantage": 1},
        reward_mean=0.5,
        reward_parts={"correct": 0.3, "finished": 0.2},
        average_at_k=0.25,
        pass_at_k=0.5,
        loss=-0.0123,
        grad_norm=1.5,
        clip_fraction=0.0,
        kl=None,
        skipped=None,
        num_tokens=512,
        tokens_per_s=32.0,
        peak_rss_bytes=1_000_000,
        seconds={"draw": 0.0, "solve": 16.0, "exchange": 0.0, "score": 3.0, "learn": 41.0, "settle": 0.1},
    )
    return dataclasses.replace(base, **changes)


def monitor(tmp_path):
    out = io.StringIO()
    status = StatusFile(tmp_path, new_status("solver", tmp_path, tmp_path))
    return RoundMonitor(tmp_path, Console(out), status, num_generations=4), out


def rounds_in(tmp_path):
    return [json.loads(line)["round"] for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]


def test_each_round_is_one_json_object_with_every_field(tmp_path):
    made, _ = monitor(tmp_path)
    made.report(report(1))
    (line,) = (tmp_path / "rounds.jsonl").read_text().splitlines()
    assert RoundReport(**json.loads(line)) == report(1)


def test_past_groups_are_in_the_line_if_there_are_any():
    assert "| local 2 replayed 3 external 0 |" in round_line(report(12, num_replayed_groups=3), 4)


def test_console_line():
    assert round_line(report(12), 4) == (
        "round 12 | reward +0.50 | pass@4 0.50 | loss -0.0123 grad 1.50 | local 2 external 0 | "
        "dropped 1 zero_advantage | 512 tok 32/s | 1m00s: solve 16 score 3 learn 41"
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"num_external_groups": 2, "num_pooled_groups": 4, "external_groups": {"a": 1, "b": 1}},
            f"| local 2 external 2 of 4 from {animal_name('a')} and {animal_name('b')} | dropped",
        ),
        (
            {"num_external_groups": 1, "num_pooled_groups": 1, "external_groups": {"a": 1}},
            f"| local 2 external 1 of 1 from {animal_name('a')} | dropped",
        ),
        (
            {"num_external_groups": 3, "num_pooled_groups": 4, "external_groups": {"a": 1, "b": 1, "c": 1}},
            "| local 2 external 3 of 4 from 3 peers | dropped",
        ),
        ({"num_pooled_groups": 3}, "| local 2 external 0 of 3 | dropped"),
        ({"fresh_tests": {"passed": 3, "unverified": 2}}, "dropped 1 zero_advantage | unverified 2 | 512 tok"),
        ({"mixed": 0.5}, "| pass@4 0.50 | mixed 50% | loss"),
        ({"network": "alone, dialling"}, "| local 2 external 0 | alone, dialling | dropped"),
        ({"judge_score": 0.75, "market": "no contract"}, "| judge service 0.75 | market: no contract | dropped"),
        ({"judge": "it is away", "market": "it is away"}, "external 0 | judge service: it is away | dropped"),
    ],
)
def test_console_line_of_a_node_in_a_swarm(changes, expected):
    assert expected in round_line(report(12, **changes), 4)


def test_hostile_peer_ids_reach_the_file_as_data_and_the_terminal_not_at_all(tmp_path):
    made, out = monitor(tmp_path)
    hostile = report(
        1, num_external_groups=1, num_pooled_groups=1, external_groups={"\x1b[2J\n\u202e": 1}, network="\x1b[31m1 peer"
    )
    made.report(hostile)
    (line,) = (tmp_path / "rounds.jsonl").read_text().splitlines()
    assert RoundReport(**json.loads(line)) == hostile
    assert out.getvalue().count("\n") == 1
    assert "\x1b" not in out.getvalue()


def test_a_round_without_an_update_says_why():
    line = round_line(report(3, skipped="every group has equal rewards", loss=None, grad_norm=None), 4)
    assert "no update: every group has equal rewards" in line


@pytest.mark.parametrize(
    ("lines", "last", "expected"),
    [
        (None, 3, [3]),
        ([1, 2], 3, [1, 2, 3]),  # killed between saving and reporting
        ([1, 2, 3], 3, [1, 2, 3]),
        ([1, 2, 3, 4], 3, [1, 2, 3]),  # the newest checkpoint was damaged: round 4 is played again
        ([1, 2, "torn"], 3, [1, 2, 3]),
        ([1, 2, "\udcff"], 3, [1, 2, 3]),  # a byte of a damaged disk
    ],
)
def test_resuming_leaves_exactly_one_line_a_finished_round(tmp_path, lines, last, expected):
    if lines is not None:
        text = "".join('{"round": 9, "re' if n == "torn" else json.dumps({"round": n}) + "\n" for n in lines)
        (tmp_path / "rounds.jsonl").write_bytes(text.replace("\\udcff", "\udcff").encode(errors="surrogateescape"))
    monitor(tmp_path)[0].resume(report(last))
    assert rounds_in(tmp_path) == expected


def test_a_new_start_keeps_the_reports_of_an_earlier_node_under_another_name(tmp_path):
    for number in (1, 2):
        made, _ = monitor(tmp_path)
        made.resume(None)
        made.report(report(number))
    made.resume(None)
    assert not (tmp_path / "rounds.jsonl").exists()
    assert [json.loads((tmp_path / f"rounds.{n}.jsonl").read_text())["round"] for n in (1, 2)] == [1, 2]


def test_summary(tmp_path):
    made, _ = monitor(tmp_path)
    assert made.summary() == "stopped before a round was finished; nothing was lost"
    made.report(report(1))
    made.report(report(2, skipped="no scored groups", loss=None, grad_norm=None, reward_mean=None, pass_at_k=None))
    assert made.summary() == (
        "done: 2 rounds in 2m00s, 1 with an update, mean reward +0.50 (higher is better), pass@4 0.50 as "
        "predicted by the evaluator"
    )
    made.report(report(3, num_external_groups=1, num_pooled_groups=2, external_groups={"a": 1}))
    assert made.summary().endswith("as predicted by the evaluator, 0.3 external groups a round")


def test_the_groups_of_an_earlier_run_are_set_aside(tmp_path):
    for name in ("groups.1.jsonl", "groups.jsonl", "groups.2.jsonl"):
        (tmp_path / name).write_text(name)
    made, _ = monitor(tmp_path)
    made.resume(report(3))
    assert (tmp_path / "groups.jsonl").exists()
    made.resume(None)
    assert {path.name: path.read_text() for path in tmp_path.glob("groups*")} == {
        "groups.2.jsonl": "groups.2.jsonl",
        "groups.1.2.jsonl": "groups.1.jsonl",
        "groups.3.jsonl": "groups.jsonl",
    }


def test_a_log_folder_that_is_gone_is_named(tmp_path):
    made, _ = monitor(tmp_path / "gone")
    with pytest.raises(StateError, match=r"cannot write .*rounds\.jsonl.*tracking\.log_dir"):
        made.report(report(1))


def test_control_characters_are_shown_not_sent():
    assert printable("a\x1b[2Jb\rc\x07\u202e") == "a\\x1b[2Jb\\rc\\x07\\u202e"
    assert printable("a\u2028b\u2029c\u00a0\n") == "a\\u2028b\\u2029c\u00a0\\n"
    out = io.StringIO()
    Console(out).line("\x1b[31mred")
    assert out.getvalue() == "\\x1b[31mred\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_output_into_a_file_on_a_full_disk_ends_nothing():
    with open("/dev/full", "wb", buffering=0) as full:
        console = Console(io.TextIOWrapper(full, write_through=True))
        console.line("a round")
        console.hold()
        console.release()
    assert [text for _, text, _ in console.lines()] == ["a round"]


def test_plain_progress_is_rare(monkeypatch):
    out = io.StringIO()
    console = Console(out)
    now = 1000.0
    monkeypatch.setattr("codezero.runtime.console.time.monotonic", lambda: now)
    console.line("start")
    for step in range(100):
        now += 1.0
        console.progress("solve", step, 100)
    assert out.getvalue().splitlines() == ["start", "  solve 29/100", "  solve 59/100", "  solve 89/100"]
