import io
import json
import os

import pytest

from codezero.errors import StateError
from codezero.observe.batches import PROPOSED, BatchMonitor, batch_line
from codezero.observe.status import StatusFile, new_status
from codezero.proposals import BatchReport, WriterReport
from codezero.runtime.console import Console


def report(batch=1, **changed):
    values = {
        "batch": batch,
        "level": 2,
        "reason": "start",
        "num_written": 4,
        "num_valid": 3,
        "rejected": {"unreadable": 1},
        "num_judged": 2,
        "signal_share": 0.5,
        "success": {"1": 0.9, "2": 0.55},
        "dropped": {},
        "reward_mean": None,
        "loss": None,
        "skipped": None,
        "network": "2 peers in sight",
        "seconds": {"write": 20.0, "check": 0.1, "publish": 0.2, "listen": 41.0, "learn": 0.0},
    }
    return BatchReport(**{**values, **changed})


def monitor(tmp_path):
    stream = io.StringIO()
    status = StatusFile(tmp_path, new_status("proposer", tmp_path, tmp_path))
    return BatchMonitor(PROPOSED, tmp_path, Console(stream), status), stream


def test_a_batch_is_one_line_of_what_matters():
    assert batch_line(report()) == (
        "batch 1 | level 2 easy (start) | valid 3 of 4 | rejected 1 unreadable | judged 2, 50% with signal | "
        "success 1:0.90 2:0.55 | 2 peers in sight | 1m01s: write 20 listen 41"
    )


def test_a_batch_without_feedback_says_no_more_than_that():
    line = batch_line(report(num_judged=0, signal_share=None, success={}, network="", rejected={}))
    assert line == "batch 1 | level 2 easy (start) | valid 3 of 4 | judged 0 | 1m01s: write 20 listen 41"


def test_an_update_and_a_skipped_one_are_told_apart():
    assert " | reward +0.40 loss -0.0120 | " in batch_line(report(reward_mean=0.4, loss=-0.012))
    assert " | no update: no judged proposals | " in batch_line(report(skipped="no judged proposals"))


WRITER = WriterReport(num_problems=3, num_cases=31, num_valid=12, num_with_one=2, num_with_three=1, batch=5)


def test_a_test_writers_cases_are_told_and_added_up(tmp_path):
    told = "cases 31 by batch 5 of the test writer, 12 valid; discriminating: 3 or more in 1 of 3 problems, none in 1"
    assert f" | {told} | judged 2" in batch_line(report(writer=WRITER))
    watched, _ = monitor(tmp_path)
    for batch in (report(1, writer=WRITER), report(2), report(3, writer=WRITER)):
        watched.report(batch)
    told = "cases 62, 24 valid; discriminating: 3 or more in 2 of 6 problems, none in 2"
    assert watched.summary().endswith(f"6 judged by solvers; {told}")


def test_dropped_feedback_is_named():
    assert " | dropped 3 unknown_proposal | " in batch_line(report(dropped={"unknown_proposal": 3}))


def test_the_file_has_one_line_a_batch_also_after_a_kill_in_between(tmp_path):
    first, _ = monitor(tmp_path)
    first.resume(None)
    first.report(report(1))
    first.report(report(2))
    again, _ = monitor(tmp_path)
    again.resume(report(3))  # saved, but killed before it was reported
    again.report(report(4))
    lines = [json.loads(line) for line in (tmp_path / "proposals.jsonl").read_text().splitlines()]
    assert [line["batch"] for line in lines] == [1, 2, 3, 4]
    assert BatchReport(**lines[3]) == report(4)


def test_a_new_life_sets_the_old_file_aside(tmp_path):
    (tmp_path / "proposals.jsonl").write_text("old\n")
    monitor(tmp_path)[0].resume(None)
    assert (tmp_path / "proposals.1.jsonl").read_text() == "old\n"
    assert not (tmp_path / "proposals.jsonl").exists()


def test_the_summary_adds_up(tmp_path):
    watched, _ = monitor(tmp_path)
    assert watched.summary() == "stopped before a batch was finished; nothing was lost"
    for batch in (1, 2):
        watched.report(report(batch))
    assert watched.summary() == "done: 2 batches in 2m03s, 6 of 8 problems valid, 4 judged by solvers"


@pytest.mark.parametrize("last", [None, report(1)])
def test_a_file_that_cannot_be_used_is_named(tmp_path, monkeypatch, last):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refused)
    (tmp_path / "proposals.jsonl").mkdir()
    with pytest.raises(StateError, match=r"proposals\.jsonl: .*tracking\.log_dir"):
        monitor(tmp_path)[0].resume(last)
