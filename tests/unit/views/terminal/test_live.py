"""Keys, and where the view can be shown at all."""

import io
import os
import pty

import pytest

from codezero.runtime.console import Console
from codezero.views.terminal.live import can_show, pressed
from codezero.views.terminal.page import ViewOptions
from codezero.views.terminal.screen import _named


def test_keys_choose_a_node_and_stop_at_the_ends():
    choice = ViewOptions()
    for key, chosen in (("up", 0), ("down", 1), ("down", 2), ("down", 2), ("home", 0), ("end", 2), ("page up", 0)):
        choice = pressed(choice, key, 20, 3, 0)
        assert choice.chosen == chosen, key


def test_in_the_log_keys_scroll_and_l_goes_back_to_the_newest():
    choice = pressed(ViewOptions(chosen=1, help=True), "log", 20, 3, 0)
    assert (choice.log, choice.help, choice.up) == (True, False, 0)
    for key, up in (("up", 1), ("page up", 21), ("down", 20), ("page down", 0), ("down", 0), ("home", 30), ("up", 30)):
        choice = pressed(choice, key, 20, 3, 30)
        assert (choice.up, choice.chosen) == (up, 1), key
    choice = pressed(choice, "log", 20, 3, 30)
    assert (choice.log, choice.up) == (False, 0)


def test_help_comes_and_goes():
    assert pressed(ViewOptions(), "help", 20, 1, 0).help
    assert not pressed(ViewOptions(help=True), "help", 20, 1, 0).help


def test_bytes_of_a_terminal_become_names_and_what_means_nothing_is_left_out():
    assert _named(b"q") == ["quit"]
    assert _named(b"\x1b[A\x1b[Bl?") == ["up", "down", "log", "help"]
    assert _named(b"xyz\xff") == []
    assert _named(b"\x1b[99;99Rq") == []  # a terminal's answer is not a key
    assert _named(b"\x1b[5~\x1bOB") == ["page up", "down"]


@pytest.fixture
def terminal():
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream
    os.close(master)


def test_a_terminal_shows_the_view_unless_it_knows_lines_only(terminal, monkeypatch):
    for name, shows in (("xterm-256color", True), ("screen", True), ("dumb", False), ("", False)):
        monkeypatch.setenv("TERM", name)
        assert can_show(terminal) is shows, name
    monkeypatch.delenv("TERM")
    assert not can_show(terminal)


def test_no_terminal_or_another_encoding_means_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert not can_show(io.StringIO())
    terminal.reconfigure(encoding="latin-1")
    assert not can_show(terminal)


def test_lines_held_back_are_printed_at_the_end_the_last_twenty_whole():
    out = io.StringIO()
    console = Console(out)
    console.line("before")
    console.hold()
    for number in range(30):
        console.line(f"line {number}")
        console.progress("solve", number, 30)
    assert out.getvalue() == "before\n"
    console.release()
    console.line("after")
    shown = out.getvalue().splitlines()
    assert shown[:3] == ["before", "(10 earlier lines were shown in the view)", "line 10"]
    assert shown[-2:] == ["line 29", "after"]
    assert len(console.lines()) == 32


def test_a_console_that_held_nothing_back_says_nothing_more():
    out = io.StringIO()
    console = Console(out)
    console.hold()
    console.release()
    assert out.getvalue() == ""


def test_a_key_takes_the_notice_away_that_ctrl_z_left_and_no_other():
    assert pressed(ViewOptions(notice="cannot be suspended here"), "help", 20, 1, 0).notice == ""
    assert pressed(ViewOptions(notice="stopping: finished rounds are saved"), "help", 20, 1, 0).notice != ""
