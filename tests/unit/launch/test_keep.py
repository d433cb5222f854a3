"""One node kept running in the foreground, with small real processes in its place."""

import io
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from codezero.errors import OUTAGE
from codezero.launch import keep
from codezero.launch.keep import keep_running
from codezero.runtime.console import Console
from tests.processes import is_alive, wait_until_gone

HEAD = """\
import os, signal, subprocess, sys, time
left = int(sys.argv[1])
starts = open(__file__ + ".starts", "a+"); starts.seek(0); start = len(starts.readlines())
print(left, file=starts, flush=True)
def play(number):
    with open(os.path.join(os.path.dirname(__file__), "rounds.jsonl"), "a") as reports:
        print('{"round": %d}' % number, file=reports)
"""


def kept(folder, source, **options):
    """Keeps a program running to its end; returns the exit code, what its starts were told is left, and the lines."""
    script = folder / "node.py"
    script.write_text(HEAD + textwrap.dedent(source))
    shown = io.StringIO()
    code = keep_running(
        lambda left: [sys.executable, str(script), str(left)],
        folder / "rounds.jsonl",
        Console(shown),
        first_pause_s=0.01,
        **options,
    )
    starts = [int(line) for line in (folder / "node.py.starts").read_text().split()]
    return code, starts, shown.getvalue().splitlines()


def test_a_clean_end_is_the_end(tmp_path):
    assert kept(tmp_path, "play(1)") == (0, [0], [])


def test_an_error_that_the_node_tells_at_its_start_is_left_to_the_user(tmp_path):
    code, starts, lines = kept(tmp_path, "sys.exit('error: no such model')")
    assert (code, starts) == (1, [0])
    assert lines == ["not started again: this would not go away by itself"]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("sys.exit(70)", "the node crashed: exit code 70; it starts again in 0.01 s where it was (Ctrl-C to stop)"),
        (
            "os.kill(os.getpid(), 9)",
            "the node crashed: killed by signal 9, Killed; it starts again in 0.01 s where it was (Ctrl-C to stop)",
        ),
    ],
)
def test_a_crashed_node_starts_again(tmp_path, end, said):
    code, starts, lines = kept(tmp_path, f"if start == 0: {end}")
    assert (code, starts, lines) == (0, [0, 0], [said])


def test_an_error_after_finished_rounds_is_a_crash_too(tmp_path):
    code, starts, lines = kept(tmp_path, "if start == 0:\n    play(1)\n    sys.exit('error: the disk is full')")
    assert (code, starts) == (0, [0, 0])
    assert lines[0].startswith("the node crashed: exit code 1; it starts again")


def test_pauses_double_and_five_crashes_without_a_round_are_enough(tmp_path):
    code, starts, lines = kept(tmp_path, "sys.exit(70)")
    assert (code, len(starts)) == (1, 5)
    assert [line.split(" in ")[1].split(" s ")[0] for line in lines[:4]] == ["0.01", "0.02", "0.04", "0.08"]
    assert lines[4] == "the node crashed: exit code 70; given up after 5 crashes with no finished round"


def test_an_outage_is_waited_out_with_longer_and_longer_pauses(tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "MAX_PAUSE_S", 0.04)
    code, starts, lines = kept(tmp_path, f"if start < 7: sys.exit({OUTAGE})")
    assert (code, len(starts)) == (0, 8)
    assert [line.split(" in ")[1].split(" s ")[0] for line in lines[:4]] == ["0.01", "0.02", "0.04", "0.04"]
    assert lines[6] == "that may pass; it starts again in 0.04 s where it was (Ctrl-C to stop)"


def test_a_finished_round_begins_the_count_anew(tmp_path):
    code, starts, lines = kept(tmp_path, "start in (3, 6) and play(start)\nif start < 9: sys.exit(70)")
    assert (code, len(starts)) == (0, 10)
    assert "starts again in 0.01 s" in lines[3]


def test_only_the_rounds_that_are_left_are_played_after_a_crash(tmp_path):
    (tmp_path / "rounds.jsonl").write_text('{"round": 1}\n{"round": 2}\n')
    source = """
    for number in range(left):
        play(3 + number + 2 * start)
        if start == 0 and number == 1: sys.exit(70)
    """
    assert kept(tmp_path, source, rounds=5)[:2] == (0, [5, 3])


def test_a_crash_behind_the_last_round_needs_no_new_start(tmp_path):
    assert kept(tmp_path, "play(1)\nsys.exit(70)", rounds=1) == (0, [1], [])


def test_reports_that_were_set_aside_or_torn_are_counted_right(tmp_path):
    path = tmp_path / "rounds.jsonl"
    assert keep.last_lines(path) == []
    path.write_bytes(b"a\nb\nto")
    assert keep.last_lines(path) == [b"a", b"b"]


def test_rounds_that_a_kill_takes_back_are_no_finished_ones(tmp_path):
    source = """
    path = os.path.join(os.path.dirname(__file__), "rounds.jsonl")
    if start == 0: [play(number) for number in (1, 2, 3)]
    else: open(path, "r+").truncate(len('{"round": 1}\\n'))
    sys.exit(70)
    """
    code, starts, _ = kept(tmp_path, source)
    assert (code, len(starts)) == (1, keep.MAX_CRASHES)


LAUNCHER = """\
import sys
from pathlib import Path
from codezero.launch.keep import keep_running
from codezero.runtime.console import Console
script = sys.argv[1]
sys.exit(keep_running(lambda left: [sys.executable, "-u", script, "0"], Path("gone"), Console(), grace_s=3))
"""


def launched(folder, source):
    script = folder / "node.py"
    script.write_text(HEAD + "print(os.getpid(), flush=True)\n" + textwrap.dedent(source))
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(script)], stdout=subprocess.PIPE, text=True)
    return launcher, int(launcher.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_node_not_started_again(tmp_path, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whatever started the tests has them ignore this signal, as nohup does")
    source = "signal.signal(signal.SIGTERM, lambda *_: (print('bye'), sys.exit(70)))\nprint('up')\ntime.sleep(600)"
    launcher, pid = launched(tmp_path, source)
    assert launcher.stdout.readline() == "up\n"
    launcher.send_signal(number)
    assert launcher.communicate(timeout=30)[0] == "bye\n"
    assert launcher.returncode == 0
    assert not is_alive(pid)


def test_what_does_not_stop_in_time_is_killed_with_all_that_it_started(tmp_path):
    source = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
    time.sleep(600)
    """
    launcher, pid = launched(tmp_path, source)
    child = int(launcher.stdout.readline())
    launcher.terminate()
    launcher.communicate(timeout=30)
    assert launcher.returncode == 0
    wait_until_gone([pid, child])


def test_a_node_does_not_outlive_a_launcher_that_is_killed(tmp_path):
    source = "from codezero.runtime.stop import stop_with_parent\nstop_with_parent()\nprint('up')\ntime.sleep(600)"
    launcher, pid = launched(tmp_path, source)
    assert launcher.stdout.readline() == "up\n"
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.communicate(timeout=30)
    wait_until_gone([pid])


def test_a_stop_during_the_pause_is_answered_at_once(tmp_path):
    launcher, _ = launched(tmp_path, "time.sleep(0.2)\nsys.exit(70)")
    assert "starts again in 1 s" in launcher.stdout.readline()
    launcher.terminate()
    launcher.communicate(timeout=30)
    assert launcher.returncode == 0
    assert (tmp_path / "node.py.starts").read_text() == "0\n"
