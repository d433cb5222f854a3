"""Stops by signals, in a program of its own."""

import signal
import subprocess
import sys
import time

import pytest

from codezero.runtime.stop import REPEAT_S

SAVES_FOR_S = REPEAT_S + 3.0
PROGRAM = f"""
import time
from codezero.runtime.stop import stop_on_signals
with stop_on_signals() as unhurried:
    try:
        print("runs", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
    with unhurried():
        time.sleep({SAVES_FOR_S})
        print("saved", flush=True)
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


@pytest.fixture
def program():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], text=True, **pipes) as process:
        assert process.stdout.readline() == "runs\n"
        yield process
        process.kill()


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_the_same_stop_sent_twice_by_a_service_manager_still_saves(program, again):
    program.send_signal(signal.SIGTERM)
    assert program.stderr.readline() == "\n"  # the first of the message: the signal was handled
    program.send_signal(again)
    assert program.stdout.readline() == "saved\n"
    assert program.wait(20) == 0


def test_a_second_stop_by_a_person_ends_it_at_once(program):
    program.send_signal(signal.SIGINT)
    assert program.stderr.readline() == "\n"
    time.sleep(REPEAT_S)
    program.send_signal(signal.SIGINT)
    assert program.wait(20) == 0
    assert program.stdout.read() == ""


def test_a_thread_that_hangs_delays_the_exit_no_longer_than_the_rest():
    with subprocess.Popen([sys.executable, "-c", HANGS], text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
