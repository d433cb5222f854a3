"""Stops by signals, in a program of its own."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

IS_STOPPED = """
import time
from codezero.runtime import stop
stop.REPEAT_S = {repeat_s}
with stop.stop_on_signals() as unhurried:
    try:
        print("runs", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""


SAVES = f"""{IS_STOPPED}
    with unhurried():
        time.sleep({{saves_for_s}})
        print("saved", flush=True)
"""


DONE = """
import time
from codezero.runtime import stop
stop.GRACE_S = 0.5
with stop.stop_on_signals() as unhurried:
    with unhurried():
        print("saves", flush=True)
        time.sleep(2)
        print("saved", flush=True)
    time.sleep(60)
"""


HANGS = """
import threading, time
from codezero.runtime import stop
stop.GRACE_S = 1.0
with stop.stop_on_signals():
    try:
        threading.Thread(target=time.sleep, args=(300,)).start()
        print("runs", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""


FAILS = f"""{IS_STOPPED.format(repeat_s=300)}
    stop.GRACE_S = 1.0
    try:
        with unhurried():
            raise OSError("the disk is full")
    finally:
        time.sleep(300)
"""


@contextmanager
def started(program, says):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    pipes["preexec_fn"] = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
    with subprocess.Popen([sys.executable, "-c", program], text=True, **pipes) as process:
        assert process.stdout.readline() == f"{says}\n"
        yield process
        process.kill()


def test_a_first_stop_during_the_last_save_waits_for_it_and_then_ends_what_hangs():
    with started(DONE, "saves") as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "\n"
        assert process.stdout.readline() == "saved\n"
        assert process.wait(20) == 0


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_the_same_stop_sent_twice_by_a_service_manager_still_saves(again):
    with started(SAVES.format(repeat_s=300, saves_for_s=2), "runs") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr.readline() == "\n"  # the first of the message: the signal was handled
        process.send_signal(again)
        assert process.stdout.readline() == "saved\n"
        assert process.wait(20) == 0


def test_a_terminal_that_goes_leaves_time_to_save_though_bash_tells_of_it_twice():
    with started(SAVES.format(repeat_s=0.0, saves_for_s=2), "runs") as process:
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline() == "\n"
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline() == "saved\n"
        assert process.wait(20) == 0


def test_a_second_stop_by_a_person_ends_it_at_once():
    with started(SAVES.format(repeat_s=0.5, saves_for_s=300), "runs") as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""


def test_a_thread_that_hangs_delays_the_exit_no_longer_than_the_rest():
    with started(HANGS, "runs") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_an_end_that_hangs_after_a_failed_save_is_told_by_the_exit_code():
    with started(FAILS, "runs") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
