"""The view on a real terminal: however it ends, the terminal is as it was, and what matters is on the normal screen."""

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import psutil
import pytest

from tests.processes import wait_until_gone
from tests.unit.launch.tty import Tty

ROOT = Path(__file__).parent.parent.parent.parent.parent
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
FRAME = "q stop"


class Terminal(Tty):
    def __init__(self, folder, way="waits", *launcher, **environment):
        command = [sys.executable, "-m", "tests.unit.views.terminal.program", str(folder), way, *launcher]
        kept = {name: value for name, value in os.environ.items() if name not in ("TERM", "NO_COLOR")}
        super().__init__(command, cwd=ROOT, env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment})
        self.resize(24, 80)
        self.before = self.settings()

    def resize(self, rows, columns):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ends(self, last_line="done: a summary\n", code=0):
        """Waits for its end, which has to be this, with the terminal as it was."""
        assert self.wait() == code
        assert self.settings() == self.before
        assert self.after().endswith(last_line)

    def after(self):
        """What is on the normal screen since the view was left."""
        assert self.shown.count(ENTER) == 1
        return self.shown.rsplit(LEAVE, 1)[1]


@pytest.fixture
def start(tmp_path):
    started = []

    def started_here(*arguments, **environment):
        started.append(Terminal(tmp_path, *arguments, **environment))
        return started[-1]

    yield started_here
    for terminal in started:
        terminal.close()


END = ["a line of the node", "WARNING: with \\x1b[2J in it"]


def test_q_stops_the_node_and_leaves_the_terminal_as_it_was(start):
    terminal = start()
    terminal.expect(FRAME)
    assert terminal.settings() != terminal.before
    assert terminal.shown.index("starts") < terminal.shown.index(ENTER)
    terminal.type("q")
    assert terminal.wait() == 0
    assert terminal.settings() == terminal.before
    lines = terminal.after().splitlines()
    assert lines[:2] == END
    assert lines[-2].startswith("stopping: the running round is dropped")
    assert lines[-1] == "done: a summary"
    assert "\x1b" not in terminal.after()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_do_the_same(start, number):
    terminal = start()
    terminal.expect(FRAME)
    os.kill(terminal.process.pid, number)
    terminal.ends()


def test_ctrl_c_still_interrupts(start):
    terminal = start()
    terminal.expect(FRAME)
    terminal.type("\x03")
    terminal.ends()


def test_after_an_error_its_traceback_is_on_the_normal_screen(start):
    terminal = start("raises")
    terminal.ends("ValueError: a bug\n", code=1)
    assert terminal.after().splitlines()[:2] == END


def test_a_mistake_of_the_view_costs_the_view_only(start):
    terminal = start("breaks")
    terminal.expect(LEAVE)
    assert terminal.process.poll() is None
    terminal.type("\x03")
    terminal.ends()


def test_keys_show_messages_and_help_and_a_resize_is_followed(start):
    terminal = start()
    terminal.expect(FRAME)
    terminal.type("l")
    terminal.expect("l back")
    terminal.type("l")
    terminal.expect("l log")
    terminal.type("?")
    terminal.expect("? back")
    terminal.type("?")
    terminal.expect("? help")
    terminal.resize(40, 132)
    terminal.expect("\x1b[40;1H")
    terminal.type("q")
    assert terminal.wait() == 0


def test_without_colours_there_are_none(start):
    terminal = start(NO_COLOR="1")
    terminal.expect("! WARNING")
    terminal.type("q")
    assert terminal.wait() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.shown)


def test_with_colours_a_warning_has_one(start):
    terminal = start()
    terminal.expect("! WARNING")
    terminal.type("q")
    assert terminal.wait() == 0
    assert "\x1b[31m! WARNING" in terminal.shown


def test_a_dumb_terminal_shows_lines(start):
    terminal = start(TERM="dumb")
    terminal.expect("in it")
    terminal.type("\x03")
    assert terminal.wait() == 0
    assert "\x1b" not in terminal.shown
    assert terminal.shown.splitlines()[:3] == ["starts", *END]


def test_without_a_terminal_there_are_lines(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.views.terminal.program", str(tmp_path), "waits"],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert [process.stdout.readline() for _ in range(3)] == ["starts\n", *(f"{line}\n" for line in END)]
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=300)[0] == "done: a summary\n"


def test_a_closed_terminal_stops_the_program(start):
    terminal = start()
    terminal.expect(FRAME)
    os.close(terminal._master)
    assert terminal.process.wait(300) >= 0  # not killed; what it prints last has nowhere to go
    terminal._master = os.open(os.devnull, os.O_RDONLY)


def test_keys_work_under_the_launcher_where_the_node_has_no_terminal_of_its_own(start):
    terminal = start("waits", "launcher")
    terminal.expect(FRAME)
    terminal.type("\x1a")
    terminal.expect("cannot be suspended here")
    terminal.type("q")
    assert terminal.wait() == 0
    assert terminal.settings() == terminal.before
    assert "done: a summary\nlauncher ends 0\n" in terminal.after()


def test_ctrl_c_under_the_launcher_stops_the_node_once(start):
    terminal = start("waits", "launcher")
    terminal.expect(FRAME)
    terminal.type("\x03")
    assert terminal.wait() == 0
    assert terminal.settings() == terminal.before
    assert "done: a summary\nlauncher ends 0\n" in terminal.after()


def test_the_launcher_gives_the_terminal_of_a_killed_node_back(start):
    terminal = start("dies", "launcher")
    terminal.expect("node | crashed: killed by signal 9")
    assert terminal.settings() == terminal.before
    assert "\x1b[?25h\x1b[?1047l" in terminal.shown
    terminal.type("\x03")
    assert terminal.wait() == 0


SHELL = """\
import os, signal, subprocess, sys, termios

def job(*arguments):
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.views.terminal.program", sys.argv[1], *arguments], preexec_fn=os.setpgrp
    )
    os.tcsetpgrp(0, started.pid)
    return started.pid

def wait(pid):
    _, status = os.waitpid(pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    return status

def told(what):
    print(what, "as it was", termios.tcgetattr(0) == before, flush=True)

signal.signal(signal.SIGTTOU, signal.SIG_IGN)
before = termios.tcgetattr(0)
"""
"""What a shell does for a job: a group of its own, in front; and the terminal back when it ends or stops."""


@pytest.fixture
def shell(tmp_path):
    started = []

    def started_here(code):
        terminal = Terminal.__new__(Terminal)
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        Tty.__init__(terminal, [sys.executable, "-c", SHELL + code, str(tmp_path)], cwd=ROOT, env=environment)
        terminal.resize(24, 80)
        started.append(terminal)
        return terminal

    yield started_here
    for terminal in started:
        terminal.close()


def test_a_node_whose_launcher_was_killed_gives_the_terminal_back(shell):
    terminal = shell("wait(job('waits', 'launcher')); input(); told('here again')")
    terminal.expect(FRAME)
    (launcher,) = psutil.Process(terminal.process.pid).children()
    (node,) = launcher.children()
    launcher.kill()
    wait_until_gone([node.pid])
    terminal.type("\n")
    terminal.expect("here again as it was True")
    assert "done: a summary" in terminal.after()
    assert terminal.wait() == 0


def test_ctrl_z_suspends_the_job_with_the_terminal_given_back_and_fg_shows_it_again(shell):
    terminal = shell(
        "pid = job('waits'); told(f'stopped {os.WIFSTOPPED(wait(pid))}'); os.tcsetpgrp(0, pid); "
        "os.killpg(pid, signal.SIGCONT); told(f'ended {os.WEXITSTATUS(wait(pid))}')"
    )
    terminal.expect(FRAME)
    terminal.type("\x1a")
    terminal.expect("stopped True as it was True")
    terminal.expect(ENTER)
    terminal.expect(FRAME)
    terminal.type("q")
    terminal.expect("ended 0 as it was True")
    assert terminal.wait() == 0


def test_in_the_background_there_are_lines(shell):
    terminal = shell(
        "os.tcsetpgrp = lambda *_: None; pid = job('waits'); input(); os.kill(pid, signal.SIGTERM); wait(pid); "
        "told('here again')"
    )
    terminal.expect("WARNING: with \\x1b[2J in it")
    terminal.type("\n")
    terminal.expect("here again as it was True")
    assert ENTER not in terminal.shown
    assert terminal.wait() == 0
