import os

import pytest

from codezero.cli import main
from tests.unit.views.report import runs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a node that has run, as the current one."""
    monkeypatch.chdir(tmp_path)
    runs.solver(tmp_path, [0.1 * number for number in range(8)])
    return tmp_path


def test_a_report_of_the_node_here(folder, capsys):
    assert main(["report"]) == 0
    assert capsys.readouterr().out == "wrote report.html\n"
    assert "Report of thorny fishy meerkat" in (folder / "report.html").read_text()
    assert {entry.name for entry in folder.iterdir()} == {"report.html", "state", "logs"}


def test_a_report_is_replaced_by_a_newer_one_and_nothing_else_is(folder, capsys):
    assert main(["report", "--png"]) == main(["report", "--png"]) == 0
    for name in ("report.html", "report.png"):
        (folder / name).write_text("<html>mine</html>")
        assert main(["report", "--png"]) == 1
        assert f"error: {name} is not a report of codezero: give another --out, or --force" in capsys.readouterr().err
        assert (folder / name).read_text() == "<html>mine</html>"
        assert main(["report", "--png", "--force"]) == 0
        assert (folder / name).read_bytes()[:9] in (b"<!doctype", b"\x89PNG\r\n\x1a\n\0")


def test_the_page_can_be_printed(folder, capsysbinary):
    assert main(["report", "--out", "-"]) == 0
    printed = capsysbinary.readouterr().out
    assert main(["report"]) == 0
    assert printed.startswith(b"<!doctype html>")
    assert len(printed) == (folder / "report.html").stat().st_size
    assert {entry.name for entry in folder.iterdir()} == {"state", "logs", "report.html"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "no node has run in nowhere"),
        (["--out", "gone/report.html"], "there is no folder gone"),
        (["--out", "logs"], "logs is a folder"),
        (["--out", "report.png", "--png"], "--out report.png is the page"),
        (["--out", "-", "--png"], "--out - prints the page alone"),
        (["--before", "x"], "--before and --after go together"),
        (["--before", "x", "--after", "y"], "there is no x: give the results.jsonl"),
    ],
)
def test_what_cannot_be_reported_is_told_in_one_line_and_leaves_nothing(folder, capsys, arguments, error):
    assert main(["report", *arguments]) == 1
    found = capsys.readouterr()
    assert error in found.err
    assert found.err.count("\n") == 1
    assert {entry.name for entry in folder.iterdir()} == {"state", "logs"}


def test_without_a_node_it_says_where_it_looked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 1
    assert "no node has run here, in state, swarms/home, gpus" in capsys.readouterr().err


def test_the_swarm_of_the_launch_script_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs.solver(tmp_path / "swarms" / "home" / "node-1", [0.5])
    assert main(["report"]) == 0


def test_a_full_disk_leaves_the_last_report_whole(folder, monkeypatch, capsys):
    assert main(["report"]) == 0
    before = (folder / "report.html").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert main(["report"]) == 1
    assert "cannot write report.html: No space left on device" in capsys.readouterr().err
    assert (folder / "report.html").read_bytes() == before
    assert {entry.name for entry in folder.iterdir()} == {"report.html", "state", "logs"}


def test_before_and_after_come_from_folders_of_eval(folder):
    before = runs.results(folder / "a", {"p": [False]})
    after = runs.results(folder / "b", {"p": [True]})
    assert main(["report", "state", "--before", str(before), "--after", str(after / "results.jsonl")]) == 0
    assert "Before and after" in (folder / "report.html").read_text()
