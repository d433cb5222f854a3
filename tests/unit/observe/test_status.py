import dataclasses
import json
import threading
import time
from pathlib import Path

import pytest

from codezero.observe import status as status_module
from codezero.observe.status import StatusFile, new_status, read_status
from tests.processes import wait_until


def test_the_file_says_what_the_node_does_and_how_it_ended(tmp_path):
    with StatusFile(tmp_path, new_status("solver", tmp_path, tmp_path / "logs")) as file:
        first = read_status(tmp_path)
        file.update(peer_id="Qm1", round=7)
        file.stage("solve")
        file.progress("solve", 3, 8)
    last = read_status(tmp_path)
    assert (first.role, first.stage, first.ended, first.round) == ("solver", "start", "", None)
    assert first.rss_bytes > 1_000_000
    assert (last.peer_id, last.round, last.stage, last.done, last.total) == ("Qm1", 7, "solve", 3, 8)
    assert (last.ended, last.log_dir) == ("stopped", "logs")


def test_an_error_is_the_end_in_its_own_words(tmp_path):
    with pytest.raises(ValueError, match="no"), StatusFile(tmp_path, new_status("solver", tmp_path, tmp_path)):
        raise ValueError("no")
    assert read_status(tmp_path).ended == "ValueError: no"


def test_text_that_utf_8_does_not_have_is_escaped(tmp_path):
    odd = tmp_path / "\udcff"  # a folder's name in Latin-1
    with StatusFile(tmp_path, new_status("solver", tmp_path, odd)) as file:
        file.update(push_trouble="the hub said \ud800")
    found = read_status(tmp_path)
    assert (found.ended, found.log_dir, found.push_trouble) == ("stopped", "\\udcff", "the hub said \\ud800")


def test_the_last_of_many_changes_reaches_the_file_while_the_node_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(status_module, "WRITE_S", 0.05)
    with StatusFile(tmp_path, new_status("solver", tmp_path, tmp_path)) as file:
        for stage in ("draw", "solve", "exchange", "score"):
            file.stage(stage)
        wait_until(lambda: read_status(tmp_path).stage == "score")


def test_a_disk_that_stalls_at_the_end_does_not_hide_how_the_node_ended(tmp_path, monkeypatch):
    stalled, has_ended, write = threading.Event(), threading.Event(), status_module.replace_file

    def replace_file(path, content):
        if threading.current_thread() is not threading.main_thread():
            stalled.set()
            has_ended.wait(0.5)  # longer than the end waits for this thread, which must not write first
            write(path, content)
        else:
            write(path, content)
            has_ended.set()

    with StatusFile(tmp_path, new_status("solver", tmp_path, tmp_path)) as file:
        monkeypatch.setattr(status_module, "replace_file", replace_file)
        monkeypatch.setattr(status_module, "WRITE_S", -0.9)
        file.stage("solve")
        assert stalled.wait(60)
    file._worker._thread.join(60)
    assert read_status(tmp_path).ended == "stopped"


def test_a_folder_that_cannot_be_written_is_warned_of_once_and_stops_nothing(tmp_path, caplog):
    missing = tmp_path / "missing"
    with StatusFile(missing, new_status("solver", tmp_path, tmp_path)) as file:
        file.stage("solve")
    assert [record.getMessage().count("the node continues") for record in caplog.records] == [1]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"role": 1}', b"\xff\xfe", b'{"role":"solver"}'])
def test_a_file_that_is_no_status_is_none(tmp_path, content):
    (tmp_path / "status.json").write_bytes(content)
    assert read_status(tmp_path) is None


def test_fields_of_a_later_version_are_left_out(tmp_path):
    known = dataclasses.asdict(new_status("solver", tmp_path, tmp_path))
    (tmp_path / "status.json").write_text(json.dumps({**known, "mood": "good"}))
    assert read_status(tmp_path).role == "solver"


def test_time_left_is_what_the_stages_usually_take():
    usual_s = {"draw": 1.0, "solve": 40.0, "learn": 60.0}
    status = dataclasses.replace(
        new_status("solver", Path("state"), Path("logs")), usual_s=usual_s, stage="solve", stage_began_at_s=100.0
    )
    assert status.left_s(110.0) == 30.0 + 60.0
    assert status.left_s(300.0) == 60.0  # longer than usual: it may be over at any moment
    assert dataclasses.replace(status, done=1, total=4).left_s(110.0) == 30.0 + 60.0
    assert dataclasses.replace(status, done=1, total=2).left_s(110.0) == 10.0 + 60.0
    assert dataclasses.replace(status, done=1, total=384).left_s(110.0) == 30.0 + 60.0  # its first token took long
    assert dataclasses.replace(status, stage="wait").left_s(110.0) is None


def test_usual_is_the_median_of_the_latest_rounds(tmp_path):
    file = StatusFile(tmp_path, new_status("solver", tmp_path, tmp_path))
    for solve_s in (1000.0, 10.0, 11.0, 12.0, 13.0, 14.0):
        file.took({"solve": solve_s, "learn": 1.0})
    assert file.status.usual_s == {"solve": 12.0, "learn": 1.0}


def test_the_pace_is_that_of_the_newest_count_of_a_stage(tmp_path):
    with StatusFile(tmp_path, new_status("verifier", tmp_path, tmp_path)) as file:
        file.took({"learn": 100.0})
        file.update(stage="learn", stage_began_at_s=time.time() - 1000.0)
        file.progress("learn", 8, 8)  # the first of two updates
        for done, total in ((1, 8), (5, 16)):
            file.progress("learn", done, total)
            assert file.status.left_s(file.status.stage_began_at_s + 10.0) == 10.0 / done * (total - done)
        began_s = file.status.stage_began_at_s
        file.progress("learn", 6, 16)
        assert time.time() - 500.0 < began_s == file.status.stage_began_at_s
